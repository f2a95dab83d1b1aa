"""Random histories of a corpus against its definition, command by command. Nothing of nearprint is imported: files are read by
docs/store-format.md, and nights are decided by docs/decisions.md.

Needs pyarrow. A seed gives the same history each time, but for the moments at which commands are killed.

    python histories.py --nearprint BINARY --first 0 --histories 1000 --jobs 2
    python histories.py --nearprint BINARY --first 17 --histories 1 --print          the commands and documents of one history
    python histories.py --nearprint BINARY --first 17 --histories 1 --minimise       the fewest of them that still differ
"""
import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pyarrow.parquet as pq

DAYS = [f"2026-11-{day:02}" for day in range(3, 11)]
IDS = [f"https://site.example/d{i:02}" for i in range(12)]
DATASETS = ("decisions", "redecided", "stubs", "changes")
# Largest distance of fingerprints and of sketches, as docs/profiles.md has them, and whether edits may be large.
PROFILES = {
    "default": (12, 36),
    "han-bigrams": (8, 40),
    "paper": (3, None),
    "simhash-crate": (3, None),
    "mllearning": (3, None),
    "python-simhash": (3, None),
}
# What finds documents of earlier nights with the default profile: fingerprints within so many bits, or so many words of the sketch.
EARLIER = {"default": (8, 2, 8)}
OWN = 1 << 30

Settings = collections.namedtuple("Settings", "profile max_lost keep_nights ranked component reference kills")
# A text as the run files have it: a fingerprint, or none if it is short; no text hash if it is empty.
Print = collections.namedtuple("Print", "fingerprint sketch text_hash n_features")
Decided = collections.namedtuple("Decided", "decision canonical reference reason")
# A decision that a later night made about the state of another night.
Again = collections.namedtuple("Again", "of_dt decided former cause")
State = collections.namedtuple("State", "dt print decided")
Existing = collections.namedtuple("Existing", "id origin print kept")
Change = collections.namedtuple("Change", "id change text_changed of_dt after before")
KEPT_AGAIN = Decided("keep", None, None, "restored")


class Difference(Exception):
    """What nearprint did is not what the definition says."""

    def __init__(self, kind, what):
        super().__init__(f"{kind}: {what}")
        self.kind = kind


def require(is_so, kind, what):
    if not is_so:
        raise Difference(kind, what() if callable(what) else what)


def require_equal(got, expected, kind, context=""):
    if got != expected:
        keys = [key for key in sorted(got.keys() | expected.keys(), key=str) if got.get(key) != expected.get(key)]
        lines = [f"{key}: got {got.get(key)}, expected {expected.get(key)}" for key in keys]
        raise Difference(kind, f"{context} " + "; ".join(lines))


# ---- Histories -----------------------------------------------------------------------------------------------------------


def draw_texts(rng, profile):
    """Base texts, with small edits of them that recur."""
    pool = random.Random(7)
    words = [[f"w{pool.randrange(100000)}" for _ in range(60)] for _ in range(3)]
    han = "".join(chr(0x4E00 + pool.randrange(3000)) for _ in range(120))
    is_wide = PROFILES[profile][1] is not None

    def text():
        kind = rng.randrange(16)
        if kind < 2:
            return f"short {rng.randrange(2)}"
        if kind == 2:
            return " "
        if kind == 3:
            return rng.choice([None, " "])
        if kind == 4:
            made = list(han)
            for _ in range(rng.randrange(3)):
                made[rng.randrange(len(made))] = rng.choice("天地人")
            return "".join(made)
        made = list(rng.choice(words))
        for _ in range(rng.randrange(3) * rng.randrange(2) if is_wide else rng.randrange(2) * rng.randrange(2)):
            made[rng.randrange(60)] = f"e{rng.randrange(2)}"
        if is_wide and rng.randrange(3) == 0:
            made += [f"more{rng.randrange(3)}" for _ in range(rng.randrange(8))]
        return " ".join(made)

    return text


def draw_documents(rng, text):
    documents = {rng.choice(IDS): (text(), rng.randrange(4)) for _ in range(2 + rng.randrange(8))}
    if rng.randrange(5) == 0:
        # A wall: most pages say one thing.
        wall = text()
        documents = {id: (wall if rng.randrange(8) else of, rank) for id, (of, rank) in documents.items()}
    return documents


def draw(seed):
    """The settings and steps of a history. A step that does not fit the state that the store has by then is passed over."""
    rng = random.Random(seed)
    profile = rng.choice(["default"] * 5 + ["han-bigrams"] * 2 + [name for name in PROFILES if name not in ("default", "han-bigrams")])
    component = rng.randrange(12) == 0
    is_limited = PROFILES[profile][1] is not None and not component
    text = draw_texts(rng, profile)
    settings = Settings(
        profile=profile,
        max_lost=rng.choice([0.04, 0.1, 0.1, 1.0]) if is_limited else 1.0,
        keep_nights=rng.choice([1, 2, 3, 4]) if rng.randrange(4) == 0 else None,
        ranked=rng.randrange(4) == 0,
        component=component,
        reference=[draw_documents(rng, text) for _ in range(1 + rng.randrange(2))] if rng.randrange(4) == 0 else [],
        kills=seed % 8 == 5,
    )
    steps, left_out = [], []
    for number, dt in enumerate(DAYS):
        if number and rng.randrange(6) == 0:
            left_out.append(dt)
        else:
            steps.append(("run", dt, draw_documents(rng, text)))
        for _ in range(rng.randrange(3)):
            passed = DAYS[: number + 1]
            kind = rng.choice(
                ["replace", "replace", "late", "late", "stale", "stale", "drop", "before", "ids", "compact", "index", "gc", "again"]
            )
            if kind == "replace":
                steps.append((kind, rng.choice(passed), draw_documents(rng, text)))
            elif kind == "again":
                steps.append((kind, rng.choice(passed)))
            elif kind == "late" and left_out:
                steps.append((kind, left_out.pop(rng.randrange(len(left_out))), draw_documents(rng, text)))
            elif kind == "drop":
                steps.append((kind, rng.choice(passed)))
                left_out.append(steps[-1][1])
            elif kind == "before" and rng.randrange(2):
                steps.append((kind, rng.choice(passed)))
            elif kind == "ids":
                steps.append((kind, sorted(rng.sample(IDS, 1 + rng.randrange(3))), rng.randrange(2) == 0))
            elif kind in ("stale", "compact", "index", "gc"):
                steps.append((kind,))
    if rng.randrange(3):
        steps.append(("stale",))
    return settings, steps


# ---- What is published ----------------------------------------------------------------------------------------------------


class Files:
    """Reads what nearprint wrote. Parquet files never change, so that each is read once."""

    def __init__(self, folder):
        self.store, self.output = Path(folder, "store"), Path(folder, "results")
        self.read = {}

    def rows(self, path):
        if path not in self.read or not path.exists():
            self.read[path] = pq.ParquetFile(path).read().to_pylist()
        return self.read[path]

    def commit(self):
        newest = max(path for path in Path(self.store, "_commits").iterdir() if re.fullmatch(r"[0-9]{8}\.json", path.name))
        return json.loads(newest.read_bytes())

    def nights(self):
        commit = self.commit()
        pages = [json.loads(Path(self.store, "pages", f"{digest}.json").read_bytes()) for digest in commit["pages"]]
        nights = [night for page in pages for night in page["nights"]] + commit["nights"]
        return {night["dt"]: night for night in nights}

    def stale(self):
        """The nights whose list of joined run files is another one now, by the digests of docs/store-format.md."""
        chain, stale = self.commit().get("forgotten", {}).get("runs", ""), []
        for dt, night in self.nights().items():
            if hashlib.sha256(chain.encode()).hexdigest()[:32] != night["joined"] or night.get("overruled"):
                stale.append(dt)
            chain = hashlib.sha256((chain + night.get("joined_as", night["run"]["digest"])).encode()).hexdigest()
        return stale

    def table(self, name):
        """The rows of a Delta table, with their nights, as its log says, and as no other file does."""
        active = {}
        for number, version in enumerate(sorted(Path(self.output, name, "_delta_log").glob("*.json"))):
            require(version.name == f"{number:020}.json", "log", lambda number=number: f"{name} has no version {number}")
            actions = [json.loads(line) for line in version.read_text().splitlines()]
            for path in (action["remove"]["path"] for action in actions if "remove" in action):
                require(active.pop(path, None), "log", lambda path=path: f"{name} loses {path}, which it does not have")
            for add in (action["add"] for action in actions if "add" in action):
                require(add["path"] not in active, "log", lambda add=add: f"{name} has {add['path']} twice")
                active[add["path"]] = add["partitionValues"]["dt"]
        return [(dt, row) for path, dt in sorted(active.items()) for row in self.rows(Path(self.output, name, path))]

    def prints(self, night):
        """The documents of a night's run files: (print, canonical id) by id."""
        folder, documents = Path(self.store, "runs", night["run"]["digest"]), {}
        for name in ("fingerprints", "short", "empty"):
            for row in self.rows(Path(folder, name, "part-00000.parquet")):
                made = Print(row.get("fingerprint"), row.get("sketch"), row.get("text_hash"), row.get("n_features"))
                documents[row["doc_id"]] = (made, row.get("canonical_id"))
        return documents


def decided(row, after=""):
    return Decided(row["decision" + after], row["canonical_id" + after], row["reference" + after], row["reason" + after])


def corpus_of(files):
    """The corpus by its definition: (night, decision) by id, and the decisions and what was decided again by night.

    A stub is no state of its page, as if the night had not crawled it.
    """
    nights, again = collections.defaultdict(dict), collections.defaultdict(dict)
    for dt, row in files.table("decisions"):
        require(row["doc_id"] not in nights[dt], "decisions", lambda dt=dt, row=row: f"{dt} has {row['doc_id']} twice")
        nights[dt]
        if row["reason"] != "stub":
            nights[dt][row["doc_id"]] = decided(row)
    for dt, row in files.table("redecided"):
        again[dt][row["doc_id"]] = (str(row["of_dt"]), decided(row), row["former_canonical_id"], row["cause"])
    corpus = {}
    for dt in sorted(nights):
        corpus |= {id: (dt, made) for id, made in nights[dt].items()}
    for dt in sorted(again):
        for id, (of_dt, made, *_) in again[dt].items():
            if id in corpus and corpus[id][0] == of_dt:
                corpus[id] = (of_dt, made)
    return corpus, nights, again


def stubs_of(files):
    """The stubs of each night, which the datasets decisions and stubs name alike."""
    by_decision, by_dataset = collections.defaultdict(set), collections.defaultdict(set)
    for dt, row in files.table("decisions"):
        if row["reason"] == "stub":
            require(decided(row)[:3] == ("drop", None, None), "stubs", lambda dt=dt, row=row: f"{dt}: {row}")
            by_decision[dt].add(row["doc_id"])
    for dt, row in files.table("stubs"):
        by_dataset[dt].add(row["doc_id"])
    require_equal(dict(by_decision), dict(by_dataset), "stubs")
    return by_decision


def sets_of(files):
    sets = collections.defaultdict(list)
    for _, row in files.table("changes"):
        before, after = decided(row, "_before"), decided(row)
        of_dt = None if row["of_dt"] is None else str(row["of_dt"])
        sets[row["change_set"]].append(Change(row["doc_id"], row["change"], row["text_changed"], of_dt, after, before))
    return dict(sorted(sets.items()))


NOTHING = Decided(None, None, None, None)


def fold(sets):
    """The corpus by its changes. Each begins with what the one before it left."""
    folded = {}
    for number, rows in sets.items():
        ids = [row.id for row in rows]
        require(ids == sorted(set(ids)), "order", lambda: f"set {number} does not have one row for each document, by id: {ids}")  # noqa: B023
        for row in rows:
            where = f"set {number}, {row}"
            require(folded.get(row.id, NOTHING) == row.before, "before", lambda: f"{where}: the fold has {folded.get(row.id)}")  # noqa: B023
            if row.before == NOTHING:
                expected = ["added"] if row.after != NOTHING else []
            elif row.after == NOTHING:
                expected = ["removed"]
            else:
                is_kept_again = row.before.decision != "keep" and row.after.decision == "keep"
                expected = ["updated", "restored"] if is_kept_again else ["updated"]
            require(row.change in expected, "kind", where)
            require((row.of_dt is None) == (row.change == "removed"), "of_dt", where)
            if row.change == "removed":
                del folded[row.id]
            else:
                folded[row.id] = row.after
    return folded


# ---- The definition of a night ---------------------------------------------------------------------------------------------


def lost_share(own, keeper):
    """The estimated share of its features that a document loses with a keeper, or None if it is unknown."""
    if own.n_features is None or keeper.n_features is None or own.sketch is None or keeper.sketch is None:
        return None
    if own.n_features == 0:
        return 0.0
    distance = differing(own.sketch, keeper.sketch)
    # J = (128 - d) / 128, so J / (1 + J) = (128 - d) / (256 - d).
    alike, of = max(0, 128 - distance), 256 - min(distance, 128)
    shared = min(alike * (own.n_features + keeper.n_features), min(own.n_features, keeper.n_features) * of)
    return (own.n_features * of - shared) / (own.n_features * of)


def differing(a, b):
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()


def pair(settings, a, b, is_earlier=False):
    """The distance of two documents that are a verified pair, else None."""
    max_distance, max_sketch_distance = PROFILES[settings.profile]
    n_words = max_word_distance = 0
    if is_earlier and settings.profile in EARLIER:
        max_distance, n_words, max_word_distance = EARLIER[settings.profile]
    if a.fingerprint is None or b.fingerprint is None:
        return None
    distance = (a.fingerprint ^ b.fingerprint).bit_count()
    near_word = n_words and a.sketch is not None and b.sketch is not None and any(
        differing(a.sketch[at : at + 8], b.sketch[at : at + 8]) <= max_word_distance for at in range(0, 8 * n_words, 8))
    if distance > max_distance and not near_word:
        return None
    if max_sketch_distance is not None:
        if a.sketch is None or b.sketch is None or differing(a.sketch, b.sketch) > max_sketch_distance:
            return None
    return distance


def star(settings, documents, existing, order, names):
    """Decides documents one after another in keep order: each is dropped for the nearest kept one with which it loses little."""
    made, kept = {}, []
    is_little = {}

    def loses_little(a, b):
        key = (a, b)
        if key not in is_little:
            share = lost_share(a, b)
            is_little[key] = share is None or share <= settings.max_lost
        return is_little[key]

    for place, id in enumerate(order):
        own = documents[id]
        if own.text_hash is None:
            made[id] = Decided("skip", None, None, None)
            continue
        near, is_near_existing, is_paired = [], False, False
        if own.fingerprint is None:
            near += [((0, 0, of.id, of.origin), of.id, of.origin, of.print) for of in existing
                     if of.kept and of.print.fingerprint is None and of.print.text_hash == own.text_hash]
            near += [((0, 1, at, 0), of, OWN, documents[of]) for at, of in kept
                     if documents[of].fingerprint is None and documents[of].text_hash == own.text_hash]
        else:
            for of in existing:
                distance = pair(settings, own, of.print, is_earlier=True)
                if distance is None:
                    continue
                is_paired = True
                is_near_existing |= of.kept
                if of.kept and loses_little(own, of.print):
                    near.append(((distance, 0, of.id, of.origin), of.id, of.origin, of.print))
            is_paired |= any(of != id and pair(settings, own, documents[of]) is not None for of in order)
            for at, of in kept:
                distance = pair(settings, own, documents[of])
                if distance is not None and loses_little(own, documents[of]):
                    near.append(((distance, 1, at, 0), of, OWN, documents[of]))
        if near:
            _, canonical, origin, of = min(near, key=lambda found: found[0])
            reason = "exact" if of.text_hash == own.text_hash else "near"
            made[id] = Decided("drop", canonical, None if origin == OWN else names[origin], reason)
            continue
        kept.append((place, id))
        if own.fingerprint is None:
            reason = "too_short"
        else:
            reason = "fuller" if is_near_existing else "canonical" if is_paired else "unique"
        made[id] = Decided("keep", None, None, reason)
    return made


class Night:
    def __init__(self, prints, made, again):
        self.prints, self.decided, self.again = prints, made, again
        # What it decided again about nights that have been made again since.
        self.dead = {}


class Definition:
    """The nights of a store as the definition makes them."""

    def __init__(self, settings, references=(), names=()):
        self.settings, self.references, self.names = settings, references, names
        self.nights, self.has_forgotten, self.is_complete = {}, False, True
        self.counts = collections.Counter()

    def view(self, before="9999"):
        """The newest state of each document in the nights before a date, as the newest of them decided it."""
        view, dates = {}, [dt for dt in sorted(self.nights) if dt < before]
        for dt in dates:
            night = self.nights[dt]
            view |= {id: State(dt, night.prints[id], night.decided[id]) for id in night.decided}
        for dt in dates:
            for id, again in self.nights[dt].again.items():
                if id in view and view[id].dt == again.of_dt:
                    view[id] = view[id]._replace(decided=again.decided)
        return view

    def leaving(self, dt):
        if self.settings.keep_nights is None:
            return []
        return sorted(self.nights.keys() | {dt})[: -self.settings.keep_nights]

    def make(self, dt, documents, prints, is_other, published):
        """Makes a night. What a store that has forgotten nights makes again is taken as it was published.

        If the night has other run files than before, what later nights decided again about its documents goes.
        """
        is_remade = dt in self.nights and self.has_forgotten
        leaving = self.leaving(dt)
        if is_remade or self.settings.component:
            made, again = published
            again = {id: Again(*row) for id, row in again.items()}
            self.counts["nights_taken"] += 1
        else:
            made, again = self.by_definition(dt, documents, prints, leaving)
            self.counts["nights_made"] += 1
        self.counts["orphans"] += len(again)
        self.counts["restored"] += sum(row.decided.decision == "keep" for row in again.values())
        self.nights[dt] = Night(prints, made, again)
        for gone in leaving:
            del self.nights[gone]
            self.has_forgotten = True
        for later in (night for of, night in self.nights.items() if of > dt and is_other):
            later.dead |= {id: row for id, row in later.again.items() if row.of_dt == dt}
            later.again = {id: row for id, row in later.again.items() if row.of_dt != dt}

    def by_definition(self, dt, documents, prints, leaving):
        existing, forgotten, earlier = {}, {}, {}
        for id, state in self.view(dt).items():
            (earlier if id in documents else forgotten if state.dt in leaving else existing)[id] = state
        of_references = [Existing(id, origin, state.print, state.decided.decision == "keep")
                         for origin, reference in enumerate(self.references) for id, state in reference.items()]
        own = [Existing(id, OWN, state.print, state.decided.decision == "keep") for id, state in existing.items()]

        def place(id):
            text, rank = documents[id]
            was_kept = id in earlier and earlier[id].decided.decision == "keep"
            return (not was_kept, rank if self.settings.ranked else 0, -len((text or "").strip()), id)

        made = star(self.settings, prints, own + of_references, sorted(documents, key=place), self.names)
        for id, (text, _) in documents.items():
            if made[id].decision == "skip":
                made[id] = made[id]._replace(reason="null_text" if text is None else "empty")
        orphans = {}
        for id, state in existing.items():
            if state.decided.decision == "drop" and state.decided.reference is None:
                cause = self.cause(state.decided.canonical, prints, made, earlier, forgotten)
                if cause:
                    orphans[id] = cause
        own = [of for of in own if of.id not in orphans]
        own += [Existing(id, OWN, prints[id], made[id].decision == "keep") for id in documents]
        texts = {id: existing[id].print for id in orphans}
        order = sorted(orphans, key=lambda id: (-(texts[id].n_features or 0), id))
        decided_again = star(self.settings, texts, own + of_references, order, self.names)
        again = {}
        for id, now in decided_again.items():
            now = KEPT_AGAIN if now.decision == "keep" else now
            again[id] = Again(existing[id].dt, now, existing[id].decided.canonical, orphans[id])
        return made, again

    @staticmethod
    def cause(canonical, prints, made, earlier, forgotten):
        """What became of a document that represents another one. None: it still does."""
        if canonical in prints:
            if canonical not in earlier or earlier[canonical].decided.decision != "keep":
                return None
            if prints[canonical].text_hash is None:
                return "empty"
            if prints[canonical].text_hash != earlier[canonical].print.text_hash:
                return "changed"
            return None if made[canonical].decision == "keep" else "dropped"
        is_forgotten = canonical in forgotten and forgotten[canonical].decided.decision == "keep"
        return "forgotten" if is_forgotten else None

    def forget_before(self, date):
        for dt in [dt for dt in self.nights if dt < date]:
            del self.nights[dt]
            self.has_forgotten, self.is_complete = True, False

    def forget_ids(self, ids):
        represented = {(dt, id) for dt, night in self.nights.items() for id, made in night.decided.items() if made.canonical in ids}
        for dt, night in self.nights.items():
            night.decided = {id: KEPT_AGAIN if (dt, id) in represented else made for id, made in night.decided.items() if id not in ids}
            night.prints = {id: of for id, of in night.prints.items() if id not in ids}
            again = {}
            for id, row in night.again.items():
                if id in ids or (row.of_dt, id) in represented:
                    continue
                if row.decided.canonical in ids:
                    row = row._replace(decided=KEPT_AGAIN)
                again[id] = row._replace(former=None) if row.former in ids else row
            night.again = again


# ---- A history ---------------------------------------------------------------------------------------------------------------

PRINTS = {}
DURATIONS = collections.defaultdict(list)


class History:
    def __init__(self, binary, folder, settings, rng):
        self.binary, self.folder, self.settings, self.rng = binary, Path(folder), settings, rng
        self.files, self.documents = Files(folder), {}
        self.counts = collections.Counter()
        references, names = [], []
        if settings.reference:
            references, names = [self.make_reference()], ["reference/store"]
        self.defined = Definition(settings, references, names)
        self.corpus, self.n_sets = {}, 0
        self.job(self.folder, [f'references = ["{name}"]' for name in names])

    def job(self, folder, more):
        settings = self.settings
        lines = ['documents = "documents"', 'store = "store"', 'output = "results"', "create_store = true", "allow_empty = true", f'profile = "{settings.profile}"']
        if PROFILES[settings.profile][1] is not None and not settings.component:
            lines.append(f"max_lost_share = {settings.max_lost}")
        if settings.component:
            lines.append('clusters = "component"')
        if settings.ranked:
            lines.append('keep = ["rank asc", "length desc"]')
        if settings.keep_nights and folder == self.folder:
            lines.append(f"keep_nights = {settings.keep_nights}")
        # The definition knows no texts but by their sketches.
        judge = ["[judge]", "max_looks = 0"] if settings.profile == "default" else []
        Path(folder, "job.toml").write_text("\n".join(lines + more + judge) + "\n")

    def make_reference(self):
        folder = self.folder / "reference"
        folder.mkdir()
        self.job(folder, [])
        defined, files = Definition(self.settings._replace(keep_nights=None)), Files(folder)
        for dt, documents in zip(DAYS, self.settings.reference):
            self.write(folder, dt, documents)
            self.nearprint(folder, "run", "--config", "job.toml", "--dt", dt, "--no-breakers")
            stubs = stubs_of(files)[dt]
            documents = {id: of for id, of in documents.items() if id not in stubs}
            prints = self.prints_of(files, dt, documents)
            _, nights, again = corpus_of(files)
            defined.make(dt, documents, prints, True, (nights[dt], again[dt]))
        return {id: state for id, state in defined.view().items() if state.print.text_hash is not None}

    @staticmethod
    def write(folder, dt, documents):
        path = Path(folder, "documents", f"dt={dt}", "part-0.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": id, "text": text, "rank": rank}, ensure_ascii=False) for id, (text, rank) in documents.items()]
        path.write_text("".join(line + "\n" for line in lines))

    def nearprint(self, folder, *args, expected=(0,)):
        started = time.monotonic()
        done = subprocess.run([self.binary, *args, "--json", "--threads", "1"], cwd=folder, capture_output=True, text=True)
        DURATIONS[args[:2]].append(time.monotonic() - started)
        self.counts["commands"] += 1
        require(done.returncode in expected, f"exit {done.returncode}", lambda: f"{' '.join(args)}: {done.stderr.strip()[-600:]}")
        lines = done.stdout.strip().splitlines()
        return done.returncode, json.loads(lines[-1]) if lines else None

    def killed(self, *args):
        """Kills the command at a random moment, once or several times, before it is run to its end."""
        while True:
            usual = statistics.median(DURATIONS[args[:2]][-50:] or [0.3])
            process = subprocess.Popen([self.binary, *args, "--json", "--threads", "1"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=self.rng.uniform(0, 1.1 * usual))
                self.counts["kills_too_late"] += 1
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.counts["kills"] += 1
            if self.files.store.is_dir() and any(self.files.store.glob("_commits/*.json")) and not self.rng.randrange(4):
                # Another command may come before it.
                other = self.rng.choice([("compact",), ("index",), ("gc", "--grace-hours", "0")])
                self.nearprint(self.folder, "store", other[0], "--config", "job.toml", *other[1:])
                self.counts["commands_between"] += 1
            if self.rng.randrange(3):
                return

    def do(self, *args, expected=(0,)):
        if self.settings.kills:
            self.killed(*args)
        return self.nearprint(self.folder, *args, expected=expected)

    def prints_of(self, files, dt, documents):
        """What the run files say about the texts of a night: the same as ever about each text."""
        rows = files.prints(files.nights()[dt])
        require(rows.keys() == documents.keys(), "run files", lambda: f"{dt} has {sorted(rows)}, not {sorted(documents)}")
        for id, (made, _) in rows.items():
            known = PRINTS.setdefault((self.settings.profile, (documents[id][0] or "").strip()), made)
            require(known == made, "run files", lambda id=id: f"{dt}: {id} has another fingerprint than its text had before")
        return {id: made for id, (made, _) in rows.items()}

    def run(self, dt, *more):
        """Runs a night of which the documents are written."""
        before = self.files.nights() if self.defined.nights else {}
        self.do("run", "--config", "job.toml", "--dt", dt, "--no-breakers", *more)
        self.made([dt], before)

    def made(self, dates, before):
        """Makes nights by the definition that a command has made."""
        _, nights, again = corpus_of(self.files)
        stubs, after = stubs_of(self.files), self.files.nights()
        for dt in dates:
            self.counts["stubs"] += len(stubs[dt])
            documents = {id: of for id, of in self.documents[dt].items() if id not in stubs[dt]}
            prints = self.prints_of(self.files, dt, documents)
            is_other = dt not in before or before[dt]["run"]["digest"] != after[dt]["run"]["digest"]
            self.defined.make(dt, documents, prints, is_other, (nights[dt], again[dt]))

    def step(self, step):
        """Does a step, and returns whether it fitted the state."""
        kind, nights = step[0], self.defined.nights
        if kind in ("run", "late", "replace", "again"):
            dt = step[1]
            if (dt in nights) != (kind in ("replace", "again")) or dt in self.defined.leaving(dt) or not self.may_come(dt):
                return False
            if kind != "again":
                self.documents[dt] = dict(step[2])
                self.write(self.folder, dt, step[2])
            newest = max(nights, default="")
            self.run(dt, *(["--replace"] if dt in nights else ["--late"] if dt < newest else []))
        elif kind == "stale":
            self.run_stale()
        elif kind == "drop":
            if step[1] not in nights or len(nights) < 2:
                return False
            # A second one after a kill may find nothing.
            self.do("store", "drop-night", "--config", "job.toml", "--dt", step[1], expected=(0, 66) if self.settings.kills else (0,))
            del nights[step[1]]
            # What it decided again goes with it, though what represented that may be forgotten.
            self.defined.is_complete &= not self.defined.has_forgotten
        elif kind == "before":
            if not nights or step[1] > max(nights) or step[1] <= min(nights):
                return False
            self.do("store", "forget", "--config", "job.toml", "--before", step[1])
            self.defined.forget_before(step[1])
        elif kind == "ids":
            if not nights:
                return False
            named = {dt: night["gen"] for dt, night in self.files.nights().items()}
            Path(self.folder, "ids.txt").write_text("".join(f"{id}\n" for id in step[1]))
            self.do("store", "forget", "--config", "job.toml", "--ids", "ids.txt")
            self.defined.forget_ids(set(step[1]))
            # Of documents that no night names any more, nothing is forgotten.
            self.is_forgetting = named != {dt: night["gen"] for dt, night in self.files.nights().items()}
            if step[2]:
                for dt in self.documents:
                    self.documents[dt] = {id: of for id, of in self.documents[dt].items() if id not in step[1]}
                    self.write(self.folder, dt, self.documents[dt])
        elif nights:
            options = {"gc": ["--grace-hours", "0"]}.get(kind, [])
            self.do("store", kind, "--config", "job.toml", *options)
        else:
            return False
        return True

    def may_come(self, dt):
        before = self.files.commit().get("forgotten", {}).get("before", "") if self.defined.nights else ""
        return dt >= before

    def run_stale(self):
        if not self.defined.nights:
            return
        stale_before = self.files.stale()
        before = self.files.nights()
        self.do("run", "--config", "job.toml", "--stale", "--no-breakers")
        after = self.files.nights()
        require(not self.files.stale(), "stale", lambda: f"{self.files.stale()} are stale after run --stale")
        remade = [dt for dt in after if dt in stale_before or after[dt]["request"] != before[dt]["request"]]
        self.made(remade, before)

    def compare(self, step):
        """Compares all that is published with the definition."""
        stale = self.files.stale()
        corpus, nights, again = corpus_of(self.files)
        listed = self.files.nights()
        require(listed.keys() == self.defined.nights.keys(), "nights", lambda: f"{sorted(listed)}, not {sorted(self.defined.nights)}")
        require(nights.keys() <= listed.keys(), "tables", lambda: f"decisions of {sorted(nights)}, nights {sorted(listed)}")
        sets = sets_of(self.files)
        new_sets = [number for number in sets if number > self.n_sets]
        folded = fold(sets)
        by_table = {id: made for id, (_, made) in corpus.items()}
        view = self.defined.view()
        by_store = {id: state.decided for id, state in view.items()}
        require_equal(folded, by_store, "fold", "the fold is not what the nights of the store say:")
        self.pass_over_dead(again, corpus, by_table, folded)
        require_equal(folded, by_table, "law", "the fold is not the corpus by decisions and redecided:")
        for dt, night in self.defined.nights.items():
            require_equal(nights[dt], night.decided, "decisions", f"{dt}{' (stale)' if dt in stale else ''}:")
            expected = {id: tuple(row) for id, row in night.again.items()}
            require_equal(again[dt], expected, "redecided", f"{dt}{' (stale)' if dt in stale else ''}:")
            canonical = {id: canonical for id, (_, canonical) in self.files.prints(listed[dt]).items()}
            require_equal(canonical, {id: made.canonical for id, made in night.decided.items()}, "run files", f"{dt}, canonical:")
        if step[0] == "ids":
            self.compare_forgotten(set(step[1]))
        if self.n_sets and step[0] == "run" and not self.settings.kills:
            require(len(new_sets) <= 1, "sets", lambda: f"{new_sets} are new")
        self.compare_changes(step, view, sets, new_sets)
        if not stale and self.defined.is_complete and not self.settings.component:
            self.promise(view)
        self.n_sets = max(sets, default=self.n_sets)

    def pass_over_dead(self, again, corpus, by_table, folded):
        """Counts rows of `redecided` that are published still, though the night that they are about has been made again."""
        for dt, night in self.defined.nights.items():
            for id, row in night.dead.items():
                if again[dt].get(id, ("",))[0] == row.of_dt and id not in night.again:
                    del again[dt][id]
                    self.counts["dead_redecided"] += 1
                    if corpus.get(id, ("",))[0] == row.of_dt:
                        by_table[id] = folded.get(id)

    def compare_forgotten(self, ids):
        """No row of a table names a forgotten document."""
        for name in DATASETS:
            for dt, row in self.files.table(name):
                is_named = not ids.isdisjoint(row.values())
                if name == "changes" and not self.is_forgetting:
                    self.counts["left_in_changes"] += is_named
                else:
                    require(not is_named, "forgotten", lambda name=name, dt=dt, row=row: f"{name} of {dt}: {row}")

    def compare_changes(self, step, view, sets, new_sets):
        """The rows of one set are those documents that have changed, and no others."""
        corpus = {id: (state.decided, state.print.text_hash) for id, state in view.items()}
        before, self.corpus = self.corpus, corpus
        if step[0] == "ids" or len(new_sets) > 1:
            return
        rows = {row.id: (row.text_changed, row.of_dt) for number in new_sets for row in sets[number]}
        expected = {}
        for id in before.keys() | corpus.keys():
            if before.get(id) != corpus.get(id):
                is_same_text = id in before and id in corpus and before[id][1] == corpus[id][1]
                expected[id] = (not is_same_text, view[id].dt if id in view else None)
        require_equal(rows, expected, "rows", "(text_changed, of_dt) of the rows of a set:")

    def promise(self, view):
        """Each dropped document would be dropped for the document that represents it, which is kept."""
        for id, state in view.items():
            if state.decided.decision != "drop":
                continue
            of_store = view if state.decided.reference is None else self.defined.references[0]
            of = of_store.get(state.decided.canonical)
            where = f"{id} of {state.dt} is dropped for {state.decided.canonical}"
            require(of is not None and of.decided.decision == "keep", "promise", lambda where=where, of=of: f"{where}, which is {of}")
            if of.print.text_hash != state.print.text_hash:
                share = lost_share(state.print, of.print)
                is_pair = any(pair(self.settings, state.print, of.print, is_earlier) is not None for is_earlier in (False, True))
                is_near = is_pair and (share is None or share <= self.settings.max_lost)
                require(is_near, "promise", lambda where=where: f"{where}, which is not near enough")


def play(binary, settings, steps, seed):
    """Plays a history. Returns what it counted, and the difference that ended it."""
    with tempfile.TemporaryDirectory(prefix="nearprint-history-") as folder:
        history = None
        done = []
        try:
            history = History(binary, folder, settings, random.Random(f"kills {seed}"))
            for step in steps:
                done.append(step)
                if history.step(step):
                    history.counts["steps"] += 1
                    history.counts[f"step_{step[0]}"] += 1
                    history.compare(step)
                else:
                    done.pop()
            if history.defined.nights:
                done.append(("check",))
                _, checked = history.nearprint(folder, "check", "--config", "job.toml")
                require(checked["status"] == "sound", "check", lambda: json.dumps(checked)[:600])
                listed = checked.get("stale", [])
                require(sorted(listed) == history.files.stale(), "check", lambda: f"stale: {listed}, not {history.files.stale()}")
            difference = None
        except Difference as found:
            difference = (found.kind, str(found), done)
        except Exception:
            difference = ("oracle", traceback.format_exc()[-1500:], done)
        counts = collections.Counter()
        if history:
            counts += history.counts + getattr(history, "defined", Definition(settings)).counts
            counts["change_sets"] += history.n_sets
            if difference is None:
                sets = sets_of(history.files)
                counts["change_rows"] += sum(len(rows) for rows in sets.values())
                for rows in sets.values():
                    for row in rows:
                        counts[f"rows_{row.change}"] += 1
        counts["histories"] += 1
        counts["histories_killed"] += settings.kills
        counts["histories_reference"] += bool(settings.reference)
        counts[f"profile_{settings.profile}"] += 1
        return counts, difference


def play_seed(binary, seed):
    return seed, *play(binary, *draw(seed), seed)


def minimise(binary, settings, steps, kind):
    """Leaves out steps, then documents, as long as a difference of this kind stays."""
    settings = settings._replace(kills=False)

    def differs(steps, settings=settings):
        _, difference = play(binary, settings, steps, 0)
        return difference is not None and difference[0] == kind

    if not differs(steps):
        return settings, steps
    for plain in (settings._replace(reference=[]), settings._replace(keep_nights=None), settings._replace(ranked=False)):
        merged = settings._replace(**{name: value for name, value in plain._asdict().items() if not value and getattr(settings, name)})
        if merged != settings and differs(steps, merged):
            settings = merged
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for at in reversed(range(len(steps))):
            fewer = steps[:at] + steps[at + 1 :]
            if differs(fewer, settings):
                steps, is_smaller = fewer, True
    for at, step in enumerate(steps):
        if step[0] in ("run", "late", "replace"):
            for id in list(step[2]):
                fewer = {other: of for other, of in steps[at][2].items() if other != id}
                tried = steps[:at] + [(*step[:2], fewer)] + steps[at + 1 :]
                if fewer and differs(tried, settings):
                    steps = tried
    return settings, steps


def listed(settings, steps):
    lines, texts = [str(settings._replace(reference=len(settings.reference)))], {}
    for step in steps:
        if step[0] not in ("run", "late", "replace"):
            lines.append(" ".join(map(str, step)))
            continue
        lines.append(f"{step[0]} {step[1]}")
        for id, (text, rank) in sorted(step[2].items()):
            texts.setdefault(text, f"T{len(texts) + 1}")
            lines.append(f"    {id} {texts[text]} rank {rank}")
    return "\n".join(lines + [f"{name} = {text!r}" for text, name in texts.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearprint", required=True, metavar="BINARY")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first history")
    parser.add_argument("--histories", type=int, default=50, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--print", action="store_true", help="write the steps of the histories, and play none")
    parser.add_argument("--minimise", action="store_true", help="look for the fewest steps and documents that still differ")
    arguments = parser.parse_args()
    binary = str(Path(arguments.nearprint).resolve())
    seeds = range(arguments.first, arguments.first + arguments.histories)
    if arguments.print:
        for seed in seeds:
            print(f"history {seed}:", listed(*draw(seed)), sep="\n")
        return 0
    total, started, n_differences = collections.Counter(), datetime.datetime.now(), 0
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(play_seed, binary, seed) for seed in seeds]):
            seed, counts, difference = future.result()
            total += counts
            if total["histories"] % 100 == 0:
                print(f"after {total['histories']}: {json.dumps(dict(sorted(total.items())))}", file=sys.stderr, flush=True)
            if difference:
                n_differences += 1
                kind, what, done = difference
                print(f"history {seed} differs after {len(done)} steps ({done[-1][0] if done else 'none'}): {what}", flush=True)
                if arguments.minimise:
                    settings, _ = draw(seed)
                    print(listed(*minimise(binary, settings, [step for step in done if step[0] != "check"], kind)), flush=True)
    seconds = (datetime.datetime.now() - started).total_seconds()
    print(json.dumps(dict(sorted(total.items())) | {"differences": n_differences, "seconds": round(seconds)}))
    return 1 if n_differences else 0


if __name__ == "__main__":
    sys.exit(main())
