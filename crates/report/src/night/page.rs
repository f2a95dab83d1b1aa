//! The report on a night as a page. It depends on published files, the documents and the job, and on whether the night is
//! stale, so the same night gives the same bytes until it becomes stale. The number of the store's commit and the other
//! nights that are stale are not in it: they change after the night.

use maud::{Markup, PreEscaped, html};
use nearprint_explain::legible;
use nearprint_fault::{Result, counted, grouped, in_bytes, percent};
use nearprint_night::NightRecord;
use nearprint_pipeline::{StubClass, StubSignal};

use super::hosts::{HostNumbers, HostRecord};
use super::links::{INDEX_NAME, after, night_page_name};
use super::markdown::figures;
use super::night_report::{LargeCluster, NightReport};
use super::notable::{Closeness, dropped_share, notable, watched};
use super::weakest::weakest;
use crate::page::chart::{Bars, DROPPED, KEPT, SKIPPED, Unit};
use crate::page::page;
use crate::page::pieces::{self, section};

/// The sizes of charts.
const SMALL: (u32, u32) = (400, 210);
const WIDE: (u32, u32) = (520, 200);

/// The other pages to which the page of a night has links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLinks {
    /// None: the page stands alone.
    None,
    /// The page of all nights and that of the night before, in the same folder. The night after may not be published yet: the
    /// link leads to its place on the page of all nights.
    Beside,
}

/// Makes the page of a night.
///
/// # Errors
/// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if a chart cannot be drawn.
pub fn night_page(night: &NightReport, links: PageLinks) -> Result<String> {
    let dt = &night.summary.dt;
    let body = html! {
        a.skip href="#main" { "To the content" }
        header {
            @if links == PageLinks::Beside { (other_nights(night)) }
            h1 { "Night " (dt) }
            p.quiet { "What nearprint decided about the documents of this night, published in " (pieces::id(&night.summary.output)) }
            (contents())
        }
        main #main {
            (overview(night))
            (trend(night)?)
            (weakest(night))
            (distributions(night)?)
            (clusters(night))
            (sources(night))
            (breakers(night))
            (quarantine(night))
            (configuration(night))
        }
        footer {
            p { "Made by nearprint from the published results. The page holds no script and loads nothing." }
        }
    };
    Ok(page(&format!("nearprint: night {dt}"), &body))
}

fn other_nights(night: &NightReport) -> Markup {
    let before = night.history.before.last().map(|before| before.dt.as_str());
    html! {
        nav aria-label="Other nights" {
            ul {
                @if let Some(before) = before { li { a href=(night_page_name(before)) { "← " (before) } } }
                li { a href=(INDEX_NAME) { "All nights" } }
                li { a href={ (INDEX_NAME) "#" (after(&night.summary.dt)) } { "The night after →" } }
            }
        }
    }
}

/// The sections after the overview: their ids and names.
const SECTIONS: [(&str, &str); 8] = [
    ("trend", "Trend"),
    ("weakest", "Weakest drops"),
    ("distributions", "Distances and losses"),
    ("clusters", "Largest clusters"),
    ("sources", "Sources"),
    ("breakers", "Breakers"),
    ("quarantine", "Quarantine"),
    ("configuration", "Configuration"),
];

fn contents() -> Markup {
    html! {
        nav aria-label="Sections" {
            ul { @for (id, name) in SECTIONS { li { a href={ "#" (id) } { (name) } } } }
        }
    }
}

fn overview(night: &NightReport) -> Markup {
    let lines = notable(night);
    let body = html! {
        dl.tiles {
            @for (name, value, note) in figures(night) {
                div { dt { (name) } dd { (value) } @if !note.is_empty() { dd.note { (legible(&note)) } } }
            }
        }
        @if lines.is_empty() {
            p { "Nothing stands out: no breaker came near its limit, and no row of the input is in quarantine." }
        } @else {
            div.look {
                h2 { "Look at" }
                ul { @for line in &lines { li { (line) } } }
            }
        }
    };
    html! { section aria-label="Overview" { (body) } }
}

fn trend(night: &NightReport) -> Result<Markup> {
    let nights: Vec<&NightRecord> = night.history.before.iter().chain([&night.history.night]).collect();
    let of = |count: fn(&NightRecord) -> u64| nights.iter().map(|night| count(night)).collect::<Vec<u64>>();
    let bars = Bars {
        size: WIDE,
        labels: nights.iter().map(|night| night.dt.get(5..).unwrap_or(&night.dt).to_owned()).collect(),
        parts: vec![
            (KEPT, of(|night| night.counts.decisions.n_keep)),
            (DROPPED, of(|night| night.counts.decisions.n_drop)),
            (SKIPPED, of(|night| night.counts.decisions.n_skip)),
        ],
        unit: Unit::Count,
    };
    let what = format!("Kept, dropped and skipped documents of {}", counted(nights.len() as u64, "night"));
    let body = html! {
        @if nights.len() == 1 {
            p { "This is the first night of the store, or the nights before it are forgotten." }
        } @else {
            figure.wide {
                figcaption { (what) ", the newest on the right" }
                ul.legend { li.kept { "kept" } li.dropped { "dropped" } li.skipped { "skipped" } }
                (picture(&bars, &format!("{what}; the table below has the numbers"))?)
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Table of nights" {
            table {
                caption { "The nights, newest first" }
                thead {
                    tr {
                        th scope="col" { "Night" }
                        @for name in ["Documents", "Kept", "Dropped", "Share dropped", "Skipped", "Quarantined"] {
                            th.n scope="col" { (name) }
                        }
                    }
                }
                tbody { @for record in nights.iter().rev() { (trend_row(record)) } }
            }
        }
    };
    Ok(section("trend", "Trend", &body))
}

fn trend_row(record: &NightRecord) -> Markup {
    let counts = &record.counts;
    let n_documents = counts.documents.n_documents;
    let or_none = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    html! {
        tr {
            th.date scope="row" { (record.dt) }
            @for n in [n_documents, counts.decisions.n_keep, counts.decisions.n_drop] { td.n { (grouped(n)) } }
            td.n { (or_none(dropped_share(counts.decisions.n_drop, n_documents))) }
            @for n in [counts.decisions.n_skip, counts.documents.n_bad_rows] { td.n { (grouped(n)) } }
        }
    }
}

fn distributions(night: &NightReport) -> Result<Markup> {
    let of = &night.distributions;
    let by_distance: Vec<(String, u64)> =
        of.near_by_distance.iter().enumerate().map(|(distance, n)| (distance.to_string(), *n)).collect();
    let by_size: Vec<(String, u64)> = of.clusters_by_size.iter().map(|(from, n)| (size_range(*from), *n)).collect();
    let by_loss = by_loss(&of.near_by_lost_hundredth);
    let body = html! {
        div.charts {
            (chart("Near-duplicates by distance", "Distance in bits", "Near-duplicates", DROPPED, &by_distance)?)
            (chart("Near-duplicates by lost share", "Lost share", "Near-duplicates", DROPPED, &by_loss)?)
            (chart("Clusters by size", "Documents", "Clusters", KEPT, &by_size)?)
        }
        @if of.n_unknown_lost_share > 0 {
            p { (counted(of.n_unknown_lost_share, "near-duplicate")) " with an unknown lost share." }
        }
    };
    Ok(section("distributions", "Distances and losses", &body))
}

/// Names the shares by hundredths or, if there are large ones, by tenths.
fn by_loss(by_hundredth: &[u64]) -> Vec<(String, u64)> {
    let step = if by_hundredth.len() > 20 { 10 } else { 1 };
    let sums = by_hundredth.chunks(step).map(|counts| counts.iter().sum());
    (0..).map(|i| format!("{} %", i * step)).zip(sums).collect()
}

fn size_range(from: u64) -> String {
    let to = from.saturating_mul(2) - 1;
    if from == to {
        from.to_string()
    } else {
        format!("{}–{}", crate::numbers::short_count(from), crate::numbers::short_count(to))
    }
}

fn chart(
    title: &str,
    of: &str,
    what: &str,
    color: plotters::style::RGBColor,
    values: &[(String, u64)],
) -> Result<Markup> {
    if values.is_empty() {
        return Ok(html! { figure { figcaption { (title) } p.quiet { "There are none." } } });
    }
    let (labels, counts): (Vec<String>, Vec<u64>) = values.iter().cloned().unzip();
    let bars = Bars { size: SMALL, labels, parts: vec![(color, counts)], unit: Unit::Count };
    Ok(html! {
        figure {
            figcaption { (title) }
            (picture(&bars, &format!("{title}; the table has the numbers"))?)
            details {
                summary { "Table: " (title) }
                table {
                    thead { tr { th scope="col" { (of) } th.n scope="col" { (what) } } }
                    tbody { @for (label, n) in values { tr { th scope="row" { (label) } td.n { (grouped(*n)) } } } }
                }
            }
        }
    })
}

/// A chart as one picture with a name, for screen readers.
pub(super) fn picture(bars: &Bars, name: &str) -> Result<Markup> {
    let svg = bars.svg()?;
    Ok(html! { div role="img" aria-label=(name) { (PreEscaped(svg)) } })
}

fn clusters(night: &NightReport) -> Markup {
    let decisions = &night.summary.counts.decisions;
    let row = |cluster: &LargeCluster| {
        let n_more = cluster.n_keep.saturating_sub(cluster.kept.len() as u64);
        [
            html! { (grouped(cluster.n_documents)) },
            html! {
                @for id in &cluster.kept { div { (pieces::document_id(id)) } }
                @if n_more > 0 { div { "and " (grouped(n_more)) " more" } }
                @if cluster.n_keep == 0 { "none: an earlier night has one, or the reference store" }
            },
            html! { (cluster.excerpt.as_deref().unwrap_or("–")) },
        ]
    };
    let rows: Vec<[Markup; 3]> = night.clusters.iter().map(row).collect();
    let body = html! {
        p {
            (counted(decisions.n_clusters, "cluster")) " of two or more documents of the night. A cluster is a chain of pairs: its ends may \
            be far apart, and the star rule keeps a document of each part that no kept document is near."
        }
        @if let Some(star) = decisions.star {
            p.quiet {
                "Of the documents of this night, at most " (grouped(star.n_keep_bound)) " could stay in any keep order, if none may be \
                dropped for another one. The rule " code { "component" } " would drop " (grouped(star.n_kept_beyond_component)) " more. "
                @if star.n_kept_in_vain > 0 {
                    (grouped(star.n_kept_in_vain)) " of the kept could be dropped for a kept one that had its turn later."
                }
            }
        }
        @if !rows.is_empty() { (table("The largest clusters", &["Documents", "What stays", "Its text"], &rows)) }
    };
    section("clusters", "Largest clusters", &body)
}

fn sources(night: &NightReport) -> Markup {
    let sources = &night.summary.counts.sources;
    let rows: Vec<[Markup; 4]> = sources
        .iter()
        .map(|source| {
            let share = dropped_share(source.n_near, source.n_documents).map_or_else(String::new, percent);
            [
                pieces::id(&source.source),
                html! { (grouped(source.n_near)) },
                html! { (grouped(source.n_documents)) },
                html! { (share) },
            ]
        })
        .collect();
    let names = ["Source", "Near-duplicates dropped", "Compared documents", "Share"];
    let body = html! {
        p { "A source is the value in the job's column of sources or, without one, the host of the id; “-” is neither." }
        @if !night.hosts.is_empty() { (hosts(&night.hosts, night.n_hosts)) }
        @if !night.summary.counts.stubs.is_empty() { (stubs(night)) }
        @if rows.is_empty() { p { "No source lost a near-duplicate." } }
        @else {
            (table("The sources that lost most documents as near-duplicates, ten at most. Compared documents are those without exact copies, stubs and skipped ones", &names, &rows))
        }
    };
    section("sources", "Sources", &body)
}

/// The table of the largest sources, with the number of all sources.
pub(super) fn hosts(hosts: &[HostRecord], n_hosts: u64) -> Markup {
    let share = |of: &HostNumbers| dropped_share(of.n_new_or_changed, of.n_documents).map_or_else(String::new, percent);
    let row = |host: &HostRecord| {
        let HostNumbers { n_documents, n_keep, n_near, n_exact, n_stub, .. } = host.counts;
        let before: Vec<String> = host.before.iter().map(|night| share(&night.counts)).collect();
        let numbers = [n_keep, n_near, n_exact, n_stub].map(|n| html! { (grouped(n)) });
        let [keep, near, exact, stub] = numbers;
        [
            pieces::id(&host.source),
            html! { (grouped(n_documents)) },
            html! { (share(&host.counts)) },
            html! { div.shares { (before.join(", ")) } },
            keep,
            near,
            exact,
            stub,
        ]
    };
    let rows: Vec<[Markup; 8]> = hosts.iter().map(row).collect();
    let names = [
        "Source",
        "Documents",
        "New or changed",
        "The same in the nights before, the last one last",
        "Kept",
        "Near-duplicates",
        "Exact copies",
        "Stubs",
    ];
    let caption = match rows.len() as u64 {
        n if n < n_hosts => format!("The largest sources: {n} of {}; the dataset hosts has all", grouped(n_hosts)),
        _ => "The largest sources".to_owned(),
    };
    table(&caption, &names, &rows)
}

fn stubs(night: &NightReport) -> Markup {
    let row = |class: &StubClass| {
        [
            pieces::document_id(&class.stub_id),
            pieces::id(&class.source),
            html! { (grouped(class.n_documents)) " of " (grouped(class.n_of_source)) },
            html! {
                @match class.signal {
                    StubSignal::Collapse => { "had at least " (class.n_earlier_texts) " different texts before" }
                    StubSignal::Share => { "many addresses, little text" }
                }
            },
        ]
    };
    let counts = &night.summary.counts;
    let rows: Vec<[Markup; 4]> = counts.stubs.iter().map(row).collect();
    let n_listed: u64 = counts.stubs.iter().map(|class| class.n_documents).sum();
    let listed = match counts.n_stubs() {
        n if n_listed < n => format!(". {} of {} stubs; the dataset stubs has all", grouped(n_listed), grouped(n)),
        _ => String::new(),
    };
    let caption = format!("Stubs: pages keep their earlier texts{listed}");
    table(&caption, &["Pages answer like", "Source", "Pages", "Why"], &rows)
}

fn breakers(night: &NightReport) -> Markup {
    let rows: Vec<[Markup; 4]> = watched(night)
        .into_iter()
        .map(|watched| {
            [
                html! { code { (watched.key) } },
                html! { (watched.meaning) },
                html! {
                    (watched.value)
                    @match watched.standing {
                        Closeness::Usual => {}
                        Closeness::Near => { " (near the limit)" }
                        Closeness::Beyond => { " (beyond the limit)" }
                        Closeness::Unknown => { " (may be near the limit)" }
                    }
                },
                html! { span.whole { (watched.limit) } },
            ]
        })
        .collect();
    let body = html! {
        p { "A night beyond a limit is not published, unless it was run without breakers or with other limits. The limits are the job's as it is now." }
        (table("What the breakers look at", &["Breaker", "What it looks at", "Value", "Limit"], &rows))
    };
    section("breakers", "Breakers", &body)
}

fn quarantine(night: &NightReport) -> Markup {
    let (documents, record) = (&night.summary.counts.documents, &night.history.night);
    let rows: Vec<[Markup; 4]> = night
        .quarantine
        .iter()
        .map(|row| {
            let id = row.id.as_deref().map(pieces::document_id);
            [
                html! { (legible(&row.reason)) },
                html! { (row.row) },
                pieces::id(&row.file),
                html! { @match id { Some(id) => (id), None => "none" } },
            ]
        })
        .collect();
    let n_rows = documents.n_bad_rows + documents.n_repeated_ids + documents.n_unknown_revisits;
    let bad: Vec<[Markup; 2]> =
        record.bad_files.iter().map(|bad| [pieces::id(&bad.url), html! { (legible(&bad.reason)) }]).collect();
    let body = html! {
        @if documents.n_repeated_ids > 0 {
            p { (counted(documents.n_repeated_ids, "row")) " left out because another row has the id; see " code { "on_duplicate_id" } ". The dataset " code { "quarantine" } " has all." }
        }
        @if documents.n_unknown_revisits > 0 {
            p { (counted(documents.n_unknown_revisits, "revisit record")) " whose text is unknown: neither the night nor the store has the record that it refers to. The dataset " code { "quarantine" } " has all." }
        }
        @if n_rows == 0 && bad.is_empty() && record.ignored_inputs.is_empty() {
            p { "No row of the input is in quarantine, and every file could be read." }
        }
        @if documents.n_bad_rows > 0 {
            p { (grouped(rows.len() as u64)) " of " (counted(documents.n_bad_rows, "bad row")) ". The dataset " code { "quarantine" } " has all." }
        }
        @if !rows.is_empty() { (table("Rows that are no documents", &["Reason", "Row", "File", "Id"], &rows)) }
        @if !bad.is_empty() { (table("Files that could not be read", &["File", "Reason"], &bad)) }
        @if !record.ignored_inputs.is_empty() {
            details {
                summary { (counted(record.ignored_inputs.len() as u64, "file")) " of other kinds, passed over" }
                ul { @for file in &record.ignored_inputs { li { (pieces::id(file)) } } }
            }
        }
    };
    section("quarantine", "Quarantine", &body)
}

fn configuration(night: &NightReport) -> Markup {
    let record = &night.history.night;
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let input = format!("{}, {}", counted(record.n_inputs, "file"), in_bytes(record.input_bytes as f64));
    let of_manifest = [
        ("release", record.release.clone()),
        ("generation", record.generation.clone()),
        ("digest of the fingerprints' configuration", record.config_digest.clone()),
        ("input", input),
    ];
    let mut rows: Vec<[Markup; 2]> =
        of_manifest.into_iter().map(|(name, value)| [html! { (name) }, pieces::id(&value)]).collect();
    for reference in &night.summary.references {
        rows.push([html! { "reference store, at commit " (reference.commit) }, pieces::id(&reference.store)]);
    }
    let settings: Vec<[Markup; 2]> =
        night.settings.iter().map(|(key, value)| [html! { code { (legible(key)) } }, pieces::id(value)]).collect();
    let body = html! {
        (table("What the night's manifest says", &["What", "Value"], &rows))
        @if !settings.is_empty() { (table("The job's settings as they are now", &["Key", "Value"], &settings)) }
    };
    section("configuration", "Configuration", &body)
}

/// A table whose first column names the rows.
fn table<const N: usize>(caption: &str, names: &[&str; N], rows: &[[Markup; N]]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for name in names { th scope="col" { (name) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (i, cell) in row.iter().enumerate() { @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } } } }
                    }
                }
            }
        }
    }
}
