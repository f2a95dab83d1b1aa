"""Compares judges of the pairs that sketches leave undecided, and what max_lost_share leaves in a corpus, as shown in evidence/judge.

    python3 evidence/judge/judges.py --bench target/release/nearprint-bench --work FOLDER --results evidence/judge/results.jsonl \\
        --page evidence/judge/README.md --plot evidence/judge/judges.svg SET...
    python3 evidence/judge/judges.py --work FOLDER --false-pairs 40 SET...

A SET is a folder with docs.jsonl or docs.parquet, pairs.tsv and, where pages are to be left out, ignore_ids.txt; its name is the set's.
Sets whose name begins with `people_` have labels by people: they are reported and choose nothing. `nearprint-bench measures` measures
the pairs of each set, and of cut copies of some of their documents, with the default profile and with the seeds of SEEDS. What is in
the folder FOLDER already is not measured again.

Without sets, the results file is read instead of written. --page replaces the tables of that page between its comments, --plot needs
matplotlib, --false-pairs prints pairs that the chosen rule takes wrongly. Each line of the results has a `part`, which is a table.
"""

import argparse
import csv
import functools
import json
import random
import re
import subprocess
from pathlib import Path

import numpy
import pyarrow.parquet as parquet

# No page has versions in both halves.
HALVES = {
    "A": ["articles_en", "ndd_r8_en", "docs_rev_en", "docs_rev_zh", "crawl_seatunnel", "docs_rev_zh_book", "laws_zh_full", "templates_en",
          "templates_en_cmdlets"],
    "B": ["docs_rev_zh_fastapi", "docs_rev_zh_otel", "docs_rev_ja", "docs_rev_ko", "docs_rev_ru", "docs_rev_de", "docs_rev_pt",
          "docs_rev_tr_vi", "templates_en_cli", "templates_zh"],
}
VISIBLE = sorted(name for half in HALVES.values() for name in half)
TEMPLATES = [name for name in VISIBLE if name.startswith("templates_")]
PEOPLE = ["people_bills_v", "people_short_v"]
GRADES = ["identical", "almost", "related", "partly", "unrelated", "-"]
# They chose neither the profile nor a judge.
SEEDS = range(24, 40)

MAX_DISTANCE, NEAR, FAR = 12, 36, 80
LIMITS = [0.02, 0.04, 0.06, 0.08, 0.10, 0.15, 1.0]
PRESETS = {"strict": 0.04, "default": 0.08, "loose": 0.15}

CUT_FROM = {"docs_rev_en": "en", "articles_en": "en", "ndd_r8_en": "en", "docs_rev_de": "de", "docs_rev_ru": "ru", "docs_rev_pt": "pt",
            "docs_rev_zh_fastapi": "zh", "docs_rev_zh_book": "zh", "laws_zh_full": "zh", "docs_rev_ja": "ja", "docs_rev_ko": "ko"}
CUT_TO = [50, 60, 70]
CUT_DOCUMENTS, CUT_MIN_CHARACTERS = 60, 400
LOGIN = {
    "en": "Please sign in or create a free account to continue reading this article. Already a subscriber? Log in here. By continuing you "
          "agree to our terms of use.",
    "de": "Bitte melden Sie sich an oder registrieren Sie sich kostenlos, um diesen Artikel weiterzulesen. Sie haben bereits ein Abo? Hier "
          "anmelden. Mit der Anmeldung stimmen Sie unseren Nutzungsbedingungen zu.",
    "ru": "Войдите или зарегистрируйтесь бесплатно, чтобы прочитать статью полностью. Уже есть подписка? Войдите здесь. Продолжая, вы "
          "принимаете условия использования сайта и политику конфиденциальности нашей редакции.",
    "pt": "Entre na sua conta ou cadastre-se gratuitamente para continuar lendo este artigo. Já é assinante? Faça login aqui. Ao continuar, "
          "você concorda com os nossos termos de uso.",
    "zh": "登录后阅读全文。您还不是会员？立即注册，即可免费阅读更多精彩内容。已有账号请直接登录。",
    "ja": "この記事の続きを読むには、ログインまたは無料の会員登録が必要です。すでに会員の方はこちらからログインしてください。",
    "ko": "이 기사를 계속 읽으려면 로그인하거나 무료로 회원 가입을 해 주세요. 이미 구독 중이신가요? 여기에서 로그인하세요. 계속하면 이용 약관에 동의하는 "
          "것으로 간주됩니다.",
}


# ---- measuring


def documents(folder):
    if (folder / "docs.parquet").exists():
        rows = parquet.read_table(folder / "docs.parquet", columns=["id", "text"]).to_pylist()
    else:
        rows = [json.loads(line) for line in (folder / "docs.jsonl").open(encoding="utf-8")]
    return [(row["id"], row["text"]) for row in rows]


def cut_copies(text, language):
    """A text, and its copies that are cut at a share of their characters, without and with a line that asks for a login."""
    copies = {"whole": text}
    for share in CUT_TO:
        cut = text[: len(text) * share // 100]
        copies |= {f"{share}": cut, f"{share} login": cut + "\n" + LOGIN[language]}
    return copies


def excerpts(text, _):
    """A text, and excerpts from its middle."""
    starts = {share: len(text) * (100 - share) // 200 for share in CUT_TO}
    return {"whole": text} | {f"{share}": text[start : start + len(text) * share // 100] for share, start in starts.items()}


def write_copies(folders, path, copies_of):
    with path.open("w", encoding="utf-8") as out:
        for name, language in CUT_FROM.items():
            long = [text for _, text in documents(folders[name]) if len(text) > CUT_MIN_CHARACTERS]
            drawn = random.Random(name).sample(long, min(CUT_DOCUMENTS, len(long)))
            for number, text in enumerate(drawn):
                for copy, own in copies_of(text, language).items():
                    out.write(json.dumps({"id": f"{name}|{number}|{copy}", "text": own}) + "\n")


def measure(bench, work, name, source, seed):
    """The rows of a set. With the profile's own seed, fingerprints may have any distance."""
    path = work / f"{name}.{'default' if seed is None else seed}.tsv"
    if not path.exists():
        command = [bench, "measures", "--documents", source, "--max-sketch-distance", str(FAR), "--threads", "2"]
        command += ["--max-distance", "64"] if seed is None else ["--seed", str(seed)]
        with path.with_suffix(".part").open("wb") as out:
            subprocess.run(command, stdout=out, check=True)
        path.with_suffix(".part").rename(path)
    return path


# ---- reading


class Pairs:
    """The measured pairs of a set, as arrays, with their labels."""

    def __init__(self, path, folder=None):
        with path.open(encoding="utf-8", newline="") as file:
            columns = file.readline().rstrip("\n").split("\t")
            rows = [line.rstrip("\n").split("\t") for line in file]
        values = dict(zip(columns, zip(*rows))) if rows else {column: () for column in columns}
        self.ids = list(zip(values["id_a"], values["id_b"]))
        number = {column: numpy.array([float(value or "nan") for value in values[column]]) for column in columns[2:]}
        self.distance, self.sketch = number["distance"], number["sketch_distance"]
        self.words = numpy.stack([number[f"word_{at}"] for at in range(4)])
        shorter = numpy.minimum(number["n_words_a"], number["n_words_b"])
        self.edit = numpy.nan_to_num(2 * number["n_common"] / (number["n_words_a"] + number["n_words_b"]))
        self.opening, self.run = number["n_opening"] / shorter, number["n_run"] / shorter
        self.contained = number["n_contained"] / numpy.maximum(1, number["n_shingles"])
        shared, a, b = number["n_shared"], number["n_features_a"], number["n_features_b"]
        self.resemblance, self.rare = shared / (a + b - shared), number["rare_share"]
        self.lost = 1 - shared / numpy.minimum(a, b)
        self.features = (shared, a, b)
        if folder is not None:
            self.label(folder)

    def label(self, folder):
        ignored = set()
        if (folder / "ignore_ids.txt").exists():
            ignored = set((folder / "ignore_ids.txt").read_text(encoding="utf-8").splitlines())
        listed = {}
        with (folder / "pairs.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                if row["id_a"] not in ignored and row["id_b"] not in ignored:
                    listed[frozenset((row["id_a"], row["id_b"]))] = (row["label"], row.get("grade") or "-", float(row["indel_sim"]))
        found = [listed.get(frozenset(ids), ("neg", "-", 0.0)) for ids in self.ids]
        scored = numpy.array([a not in ignored and b not in ignored for a, b in self.ids], bool)
        self.positive = scored & numpy.array([label == "pos" for label, _, _ in found], bool)
        self.negative = scored & numpy.array([label == "neg" for label, _, _ in found], bool)
        self.grade = numpy.array([grade for _, grade, _ in found])
        self.similarity = numpy.array([similarity for _, _, similarity in found])
        self.n_positive = sum(label == "pos" for label, _, _ in listed.values())
        grades = [grade for _, grade, _ in listed.values()]
        self.n_grade = {grade: grades.count(grade) for grade in GRADES}

    def score(self, taken):
        true, false = int((taken & self.positive).sum()), int((taken & self.negative).sum())
        precision, recall = (true / (true + false) if true + false else 1.0), true / self.n_positive
        return (2 * precision * recall / (precision + recall) if true else 0.0), precision, recall, false


# ---- rules

CONTAINED, OPENING, EDIT = 0.95, 0.70, 0.84


def steps(low, high, step):
    return [round(low + step * at, 4) for at in range(round((high - low) / step) + 1)]


def whole(p):
    return (p.contained >= CONTAINED) | (p.opening >= OPENING)


# By name: what says that a pair is alike at a threshold, and the thresholds.
JUDGES = {
    "resemblance of features": (lambda p, t: p.resemblance >= t, steps(0.4, 0.9, 0.02)),
    "resemblance, rare features weigh more": (lambda p, t: p.rare >= t, steps(0.2, 0.9, 0.02)),
    "containment of runs of three words": (lambda p, t: p.contained >= t, steps(0.8, 1.0, 0.01)),
    "longest run in common": (lambda p, t: p.run >= t, steps(0.3, 1.0, 0.05)),
    "opening": (lambda p, t: p.opening >= t, steps(0.3, 1.0, 0.05)),
    "edit similarity": (lambda p, t: p.edit >= t, steps(0.76, 0.94, 0.01)),
    "edit, or containment ≥ .95": (lambda p, t: (p.edit >= t) | (p.contained >= CONTAINED), steps(0.76, 0.94, 0.01)),
    "edit, or opening ≥ .70": (lambda p, t: (p.edit >= t) | (p.opening >= OPENING), steps(0.76, 0.94, 0.01)),
    "edit, or longest run ≥ .75": (lambda p, t: (p.edit >= t) | (p.run >= 0.75), steps(0.76, 0.94, 0.01)),
    "edit, or containment ≥ .95, or longest run ≥ .75":
        (lambda p, t: (p.edit >= t) | (p.contained >= CONTAINED) | (p.run >= 0.75), steps(0.76, 0.94, 0.01)),
    "edit, or containment ≥ .95, or opening ≥ .70": (lambda p, t: (p.edit >= t) | whole(p), steps(0.76, 0.94, 0.01)),
    "resemblance, or containment ≥ .95, or opening ≥ .70": (lambda p, t: (p.resemblance >= t) | whole(p), steps(0.4, 0.9, 0.02)),
    "rare resemblance, or containment ≥ .95, or opening ≥ .70": (lambda p, t: (p.rare >= t) | whole(p), steps(0.2, 0.9, 0.02)),
}
CHOSEN = "edit, or containment ≥ .95, or opening ≥ .70"


def today(p):
    return (p.distance <= MAX_DISTANCE) & (p.sketch <= NEAR)


def added(p, alike, far=FAR, candidates=None):
    """The rule of the sketch, and what a judge takes beyond it."""
    candidates = p.distance <= MAX_DISTANCE if candidates is None else candidates
    return candidates & ((p.sketch <= NEAR) | ((p.sketch <= far) & alike))


def replaced(p, alike, low=20):
    """The judge decides from 20 bits on."""
    return (p.distance <= MAX_DISTANCE) & ((p.sketch < low) | ((p.sketch <= FAR) & alike))


def chosen_alike(p):
    return (p.edit >= EDIT) | whole(p)


def chosen(p):
    return added(p, chosen_alike(p))


# ---- results


def mean(values):
    values = list(values)
    return sum(values) / len(values)


class Data:
    """All sets, measured with one seed."""

    def __init__(self, arguments, folders, seed):
        read = functools.partial(measure, arguments.bench, arguments.work, seed=seed)
        self.sets = {name: Pairs(read(name, folders[name]), folders[name]) for name in [*VISIBLE, *PEOPLE]}
        self.cut, self.cut_of, self.n_cut = self.copies(arguments, folders, read, "cut", cut_copies)
        if seed is None:
            self.excerpts, self.excerpt_of, _ = self.copies(arguments, folders, read, "excerpts", excerpts)

    @staticmethod
    def copies(arguments, folders, read, name, copies_of):
        """The pairs of documents and their copies, the kind of each pair's copy, and the number of documents of each set."""
        source = arguments.work / f"{name}.jsonl"
        if not source.exists():
            write_copies(folders, source, copies_of)
        pairs = Pairs(read(name, source))
        ids = [(a.split("|"), b.split("|")) for a, b in pairs.ids]
        kinds = numpy.array([b[2] if a[:2] == b[:2] and a[2] == "whole" else "" for a, b in ids])
        whole = [json.loads(line)["id"].split("|") for line in source.open(encoding="utf-8")]
        return pairs, kinds, {name: sum(own == [name, own[1], "whole"] for own in whole) for name in CUT_FROM}

    def scores(self, rule, names):
        return {name: self.sets[name].score(rule(self.sets[name])) for name in names}

    def figures(self, rule):
        """What a rule finds: the visible sets, those of people, and cut copies."""
        scores = self.scores(rule, VISIBLE)
        worst = min(VISIBLE, key=lambda name: scores[name][0])
        bills = self.sets["people_bills_v"]
        taken, short, cut = rule(bills), self.scores(rule, ["people_short_v"])["people_short_v"], rule(self.cut)
        return {
            "macro_f1": mean(score[0] for score in scores.values()),
            "worst": [worst, scores[worst][0]],
            "precision_templates": min(scores[name][1] for name in TEMPLATES),
            "n_false": sum(score[3] for score in scores.values()),
            "bills": {grade: [int((taken & (bills.grade == grade)).sum()), bills.n_grade[grade]] for grade in GRADES},
            "short": short[1:3],
            "cut": {kind: int((cut & (self.cut_of == kind)).sum()) / sum(self.n_cut.values())
                    for share in CUT_TO for kind in (f"{share}", f"{share} login")},
        }

    def choose(self, names, rule_at, thresholds):
        """The threshold with the greatest mean of macro F1 and the least F1 of a set; the strictest of equal ones."""
        def worth(threshold):
            values = [score[0] for score in self.scores(lambda p: rule_at(p, threshold), names).values()]
            return round((mean(values) + min(values)) / 2, 9), threshold
        return max(thresholds, key=worth)

    def by_folds(self, rule_at, thresholds):
        """The thresholds that each half chooses, and the scores of the halves at the choice of the other."""
        own = {half: self.choose(names, rule_at, thresholds) for half, names in HALVES.items()}
        scores = {}
        for half, other in (("A", "B"), ("B", "A")):
            scores |= self.scores(lambda p, t=own[other]: rule_at(p, t), HALVES[half])
        return {
            "thresholds": own | {"all": self.choose(VISIBLE, rule_at, thresholds)},
            "macro_f1_folds": mean(score[0] for score in scores.values()),
            "worst_folds": min(score[0] for score in scores.values()),
            "precision_templates_folds": min(scores[name][1] for name in TEMPLATES),
        }


def swept(data, rule, alike, thresholds):
    """What a judge finds by folds, and at the threshold that all sets choose."""
    def rule_at(p, threshold):
        return rule(p, alike(p, threshold))
    folds = data.by_folds(rule_at, thresholds)
    return folds | data.figures(lambda p: rule_at(p, folds["thresholds"]["all"]))


def judges(data):
    yield {"part": "judges", "name": "the sketch alone", **data.figures(today)}
    for name, (alike, thresholds) in JUDGES.items():
        beyond, instead = (swept(data, rule, alike, thresholds) for rule in (added, replaced))
        yield {"part": "judges", "name": name, **beyond, "instead": instead}


def sweeps(data):
    """The chosen rule with one limit changed."""
    of = {
        ("edits", "edit"): steps(0.78, 0.92, 0.02),
        ("bands", "far"): [40, 44, 48, 56, 64, 72, 80],
        ("openings", "opening"): steps(0.5, 0.9, 0.1),
        ("containments", "contained"): [0.85, 0.90, 0.92, 0.94, 0.95, 0.96, 0.98, 1.0],
    }
    for (part, key), values in of.items():
        for value in values:
            yield {"part": part, key: value, **data.figures(variant(**{key: value}))}


def with_words(limit, n_words, bits):
    def candidates(p):
        near = p.distance <= limit
        return near | (p.words[:n_words].min(axis=0) <= bits) if n_words else near
    return candidates


def alike_at(p, edit=EDIT, contained=CONTAINED, opening=OPENING):
    return (p.edit >= edit) | (p.contained >= contained) | (p.opening >= opening)


def variant(far=FAR, **limits):
    return lambda p: added(p, alike_at(p, **limits), far)


def reading_from(low, **limits):
    return lambda p: replaced(p, alike_at(p, **limits), low)


VARIANTS = {
    "the sketch alone": today,
    "**chosen**": chosen,
    "edit similarity ≥ .80": variant(edit=0.80),
    "edit similarity ≥ .82": variant(edit=0.82),
    "edit similarity ≥ .86": variant(edit=0.86),
    "edit similarity ≥ .88": variant(edit=0.88),
    "containment ≥ .98": variant(contained=0.98),
    "without containment": variant(contained=2),
    "without opening": variant(opening=2),
    "sketch distance ≤ 64": variant(far=64),
    "sketch distance ≤ 72": variant(far=72),
} | {f"read from {low} bits on": reading_from(low) for low in (20, 24, 28, 32)} | {
    f"read from 20 bits on, edit similarity ≥ {edit}": reading_from(20, edit=float(edit)) for edit in (".80", ".82", ".86")
}
CANDIDATES = {f"distance ≤ {limit}": (limit, 0, 0) for limit in (8, 10, 12, 14, 16)} | {
    f"distance ≤ {limit}, or {words} within {bits}": (limit, n_words, bits)
    for limit in (8, 10, 12) for n_words, words in ((1, "word 0"), (2, "word 0 or 1"), (4, "any word")) for bits in (8, 9)
}


def seeds(arguments, folders):
    """The chosen rule, that of the sketch, and other candidates, over seeds."""
    of_seed = {}
    for seed in SEEDS:
        data = Data(arguments, folders, seed)
        rules = {("seeds", name): rule for name, rule in VARIANTS.items()}
        for name, limits in CANDIDATES.items():
            candidates = with_words(*limits)
            rules["candidates", name] = lambda p, of=candidates: added(p, chosen_alike(p), candidates=of(p))
        for key, rule in rules.items():
            f1 = {name: score[0] for name, score in data.scores(rule, VISIBLE).items()}
            of_seed.setdefault(key, []).append({"seed": seed, **data.figures(rule), "f1": f1})
    for (part, name), lines in of_seed.items():
        macro = [line["macro_f1"] for line in lines]
        f1 = {each: mean(line["f1"][each] for line in lines) for each in VISIBLE}
        worst = min(VISIBLE, key=f1.get)
        least = min((line["worst"][1], line["worst"][0], line["seed"]) for line in lines)
        precision = [line["precision_templates"] for line in lines]
        yield {
            "part": part, "name": name, "macro_f1": [mean(macro), min(macro), max(macro)], "worst": [worst, f1[worst]],
            "least": least, "precision_templates": [mean(precision), min(precision)],
            "bills": {grade: [mean(line["bills"][grade][0] for line in lines), min(line["bills"][grade][0] for line in lines),
                              max(line["bills"][grade][0] for line in lines)] for grade in GRADES},
            "short": [mean(line["short"][at] for line in lines) for at in range(2)],
            "cut": {kind: mean(line["cut"][kind] for line in lines) for kind in lines[0]["cut"]},
            "cut_least": {kind: min(line["cut"][kind] for line in lines) for kind in lines[0]["cut"]},
            "f1": f1,
        }


def excerpts_found(data):
    """The excerpts that rules find."""
    rules = {"the sketch alone": today, "**chosen**": chosen, "without containment": variant(contained=2), "without opening": variant(opening=2)}
    for name, rule in rules.items():
        taken = rule(data.excerpts)
        found = {f"{share}": int((taken & (data.excerpt_of == f"{share}")).sum()) / sum(data.n_cut.values()) for share in CUT_TO}
        yield {"part": "excerpts", "name": name, "cut": found}


def languages(data):
    """The cut copies that the chosen rule finds, and those that are candidates, by language."""
    kinds = [f"{share}{login}" for login in ("", " login") for share in CUT_TO]
    of_set = numpy.array([a.split("|")[0] for a, _ in data.cut.ids])
    taken, near = chosen(data.cut), data.cut.distance <= MAX_DISTANCE
    for language in LOGIN:
        names = [name for name, own in CUT_FROM.items() if own == language]
        n = sum(data.n_cut[name] for name in names)
        count = lambda of, kind, names=names: int((of & (data.cut_of == kind) & numpy.isin(of_set, names)).sum())  # noqa: E731
        yield {"part": "languages", "language": language, "n": n, "cut": {kind: count(taken, kind) / n for kind in kinds},
               "candidates": {kind: count(near, kind) / n for kind in kinds}}


def lost(data):
    """In what share of true pairs both documents stay, at each limit, and what the dropped ones lose."""
    groups = {"identical or almost, by people": [("people_bills_v", lambda p: numpy.isin(p.grade, ["identical", "almost"]))]}
    for low, high in ((0.9, 1.01), (0.8, 0.9), (0.7, 0.8)):
        name = f"true pairs at resemblance {low:.1f} to {min(high, 1):.1f}"
        groups[name] = [(at, lambda p, low=low, high=high: p.positive & (p.resemblance >= low) & (p.resemblance < high)) for at in VISIBLE]
    for name, parts in groups.items():
        taken, losses = [], []
        for at, of in parts:
            pairs = data.sets[at]
            of_group = of(pairs)
            taken.append(chosen(pairs)[of_group])
            losses.append(pairs.lost[of_group])
        taken, losses = numpy.concatenate(taken), numpy.concatenate(losses)
        stay, loss = [], []
        for limit in LIMITS:
            dropped = taken & (losses <= limit)
            stay.append(1 - float(dropped.mean()))
            loss.append(float(losses[dropped].mean()) if dropped.any() else None)
        yield {"part": "lost", "name": name, "n_pairs": len(losses), "limits": LIMITS, "both_stay": stay, "lost": loss}


SAMPLE, DRAWS = 64, 8


@functools.cache
def sampled(p, draw):
    """Resemblance and containment as samples of the SAMPLE least hashes of the features of each text would estimate them.

    The SAMPLE least hashes of all features of both texts are a draw without replacement, and both samples tell which of them both texts have.
    """
    shared, a, b = (count.astype(int) for count in p.features)
    n_drawn = numpy.minimum(SAMPLE, a + b - shared)
    n_shared = numpy.random.default_rng(draw).hypergeometric(shared, a + b - 2 * shared, n_drawn)
    resemblance = n_shared / n_drawn
    return resemblance, numpy.minimum(1, resemblance * (a + b) / (1 + resemblance) / numpy.minimum(a, b))


def by_sample(draw):
    def alike(p, limits):
        resemblance, contained = sampled(p, draw)
        return (resemblance >= limits[0]) | (contained >= limits[1])
    return alike


def ways(data):
    """What finds a pair of documents of two nights: the sketch, a sample in the store, or the texts."""
    yield {"part": "ways", "name": "the sketch alone", **data.figures(today)}
    limits = [(resemblance, contained) for resemblance in steps(0.60, 0.80, 0.04) for contained in (0.90, 0.94, 0.97, 0.99, 1.0, 2.0)]
    lines = []
    for draw in range(DRAWS):
        alike = by_sample(draw)
        folds = data.by_folds(lambda p, t, alike=alike: added(p, alike(p, t)), limits)
        lines.append(folds | data.figures(lambda p, alike=alike, t=folds["thresholds"]["all"]: added(p, alike(p, t))))
    yield {"part": "ways", "name": f"a sample of {SAMPLE} hashes, mean of {DRAWS} draws", **means(lines)}
    yield {"part": "ways", "name": "both texts", **data.figures(reading_from(28))}


def means(lines):
    return {
        "macro_f1": mean(line["macro_f1_folds"] for line in lines),
        "worst": ["", min(line["worst_folds"] for line in lines)],
        "precision_templates": min(line["precision_templates_folds"] for line in lines),
        "n_false": mean(line["n_false"] for line in lines),
        "bills": {grade: [mean(line["bills"][grade][0] for line in lines), lines[0]["bills"][grade][1]] for grade in GRADES},
        "short": [mean(line["short"][at] for line in lines) for at in range(2)],
        "cut": {kind: mean(line["cut"][kind] for line in lines) for kind in lines[0]["cut"]},
        "thresholds": [line["thresholds"] for line in lines],
    }


def print_false(data, folders, n):
    """Prints pairs of the visible sets that the chosen rule takes, the sketch alone does not, and the labels call negative."""
    for name in VISIBLE:
        pairs = data.sets[name]
        false = numpy.flatnonzero(chosen(pairs) & ~today(pairs) & pairs.negative)
        if len(false):
            texts = dict(documents(folders[name]))
            print(f"\n== {name}: {len(false)}")
        for at in false[:n]:
            a, b = pairs.ids[at]
            print(f"-- {a} | {b}: sketch {pairs.sketch[at]:.0f}, edit {pairs.edit[at]:.3f}, contained {pairs.contained[at]:.3f}, "
                  f"opening {pairs.opening[at]:.3f}, labelled {pairs.similarity[at]:.3f}")
            print("   ", texts[a][:300].replace("\n", " "), "\n   ", texts[b][:300].replace("\n", " "))


# ---- tables and plots


def short(value, digits=3):
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def bills(line):
    by = line["bills"]
    return " | ".join(f"{count:g}" for count in (by["almost"][0], by["related"][0], by["partly"][0] + by["unrelated"][0]))


def cuts(line, login):
    return " ".join(short(line["cut"][f"{share}{login}"], 2) for share in CUT_TO)


def after(line):
    return (f"{bills(line)} | {short(line['short'][0])} {short(line['short'][1])} | {cuts(line, '')} | {cuts(line, ' login')} |")


AFTER = "almost, of 39 | related, of 59 | partly, unrelated, of 235 | short: P, R | cut at 50, 60, 70 % | with a login line |"


def table_judges(lines):
    yield f"| judge | thresholds of A, B; all | macro F1 by folds | F1, worst set | P, worst template set | {AFTER} from 20 bits: F1 by folds, P |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        name = f"**{line['name']}**" if line["name"] == CHOSEN else line["name"]
        if "thresholds" not in line:
            yield (f"| {name} | | {short(line['macro_f1'], 4)} | {short(line['worst'][1])} | {short(line['precision_templates'])} | {after(line)} |")
            continue
        own, instead = line["thresholds"], line["instead"]
        yield (f"| {name} | {short(own['A'], 2)}, {short(own['B'], 2)}; {short(own['all'], 2)} | {short(line['macro_f1_folds'], 4)} "
               f"| {short(line['worst_folds'])} | {short(line['precision_templates_folds'])} | {after(line)} "
               f"{short(instead['macro_f1_folds'], 4)} {short(instead['precision_templates_folds'])} |")


def table_sweep(key, title, lines):
    yield f"| {title} | macro F1 | F1, worst set | P, worst template set | false pairs | {AFTER}"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        value = line[key] if isinstance(line[key], int) else short(line[key], 2)
        yield (f"| {value} | {short(line['macro_f1'], 4)} | {short(line['worst'][1])} | {short(line['precision_templates'])} "
               f"| {line['n_false']} | {after(line)}")


def table_seeds(lines):
    yield ("| rule | macro F1: mean (least to most) | worst set, mean | least F1 of a set and a seed | P, worst template set: mean (least) "
           "| almost, of 39 | partly, unrelated | short: P, R | cut at 50, 60, 70 % | with a login line |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        macro, precision, by = line["macro_f1"], line["precision_templates"], line["bills"]
        wrong = by["partly"][2] + by["unrelated"][2]
        yield (f"| {line['name']} | {short(macro[0], 4)} ({short(macro[1], 4)} to {short(macro[2], 4)}) | `{line['worst'][0]}` {short(line['worst'][1])} "
               f"| {short(line['least'][0])} (`{line['least'][1]}`) | {short(precision[0])} ({short(precision[1])}) "
               f"| {by['almost'][0]:.1f} ({by['almost'][1]} to {by['almost'][2]}) | at most {wrong} "
               f"| {short(line['short'][0])} {short(line['short'][1])} | {cuts(line, '')} | {cuts(line, ' login')} |")


def table_candidates(lines):
    yield "| candidates | macro F1: mean (least) | P, worst template set: mean | almost, of 39 | short: P, R | cut at 50, 60, 70 % | with a login line |"
    yield "|---|---|---|---|---|---|---|"
    for line in lines:
        yield (f"| {line['name']} | {short(line['macro_f1'][0], 4)} ({short(line['macro_f1'][1], 4)}) | {short(line['precision_templates'][0])} "
               f"| {line['bills']['almost'][0]:.1f} | {short(line['short'][0])} {short(line['short'][1])} | {cuts(line, '')} | {cuts(line, ' login')} |")


def table_excerpts(lines):
    yield "| rule | excerpts of 50, 60, 70 % found |"
    yield "|---|---|"
    for line in lines:
        yield f"| {line['name']} | {cuts(line, '')} |"


def table_languages(lines):
    yield "| language | documents | cut at 50, 60, 70 % | with a login line | candidates at 70 % with the line |"
    yield "|---|---|---|---|---|"
    for line in lines:
        yield f"| {line['language']} | {line['n']} | {cuts(line, '')} | {cuts(line, ' login')} | {short(line['candidates']['70 login'], 2)} |"


def table_ways(lines):
    yield f"| what tells | macro F1 | F1, worst set | P, worst template set | {AFTER}"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        yield (f"| {line['name']} | {short(line['macro_f1'], 4)} | {short(line['worst'][1])} | {short(line['precision_templates'])} | {after(line)}")


def table_lost(lines):
    yield "| pairs | number | " + " | ".join("any" if limit == 1 else short(limit, 2) for limit in LIMITS) + " |"
    yield "|---" * (2 + len(LIMITS)) + "|"
    for line in lines:
        cells = [f"{short(stay)} ({short(loss)})" if loss is not None else short(stay) for stay, loss in zip(line["both_stay"], line["lost"])]
        yield f"| {line['name']} | {line['n_pairs']:,} | " + " | ".join(cells) + " |"


TABLES = {
    "judges": table_judges,
    "edits": functools.partial(table_sweep, "edit", "edit similarity ≥"),
    "bands": functools.partial(table_sweep, "far", "sketch distance ≤"),
    "openings": functools.partial(table_sweep, "opening", "opening ≥"),
    "containments": functools.partial(table_sweep, "contained", "containment ≥"),
    "seeds": table_seeds,
    "candidates": table_candidates,
    "excerpts": table_excerpts,
    "languages": table_languages,
    "ways": table_ways,
    "lost": table_lost,
}


def write_page(path, lines):
    page = path.read_text(encoding="utf-8")
    for part, table in TABLES.items():
        rows = "\n".join(table([line for line in lines if line["part"] == part]))
        page = re.sub(rf"(<!-- table {part} -->\n).*?(<!-- end -->)", lambda match, rows=rows: match[1] + rows + "\n" + match[2], page, flags=re.S)
    path.write_text(page, encoding="utf-8")


def plot(path, lines):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "nearprint", "axes.grid": True, "grid.alpha": 0.3, "font.size": 9})
    figure, (first, second) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    places = range(len(LIMITS))
    for line, colour in zip([line for line in lines if line["part"] == "lost"], ["black", "#0072B2", "#D55E00", "#009E73"]):
        first.plot(places, line["both_stay"], "o-", color=colour, markersize=4, label=line["name"])
        second.plot(places, [numpy.nan if loss is None else loss for loss in line["lost"]], "o-", color=colour, markersize=4, label=line["name"])
    for axes, title in ((first, "Share of the pairs of which both documents stay"), (second, "Mean share of features that a dropped document loses")):
        axes.set_xticks(places, ["any" if limit == 1 else short(limit, 2) for limit in LIMITS])
        axes.set_xlabel("max_lost_share")
        axes.set_title(title)
        axes.set_ylim(bottom=0)
        for preset, limit in PRESETS.items():
            axes.axvline(LIMITS.index(limit), color="grey", linestyle=":", linewidth=1)
            second.annotate(preset, (LIMITS.index(limit), 1), (3, -10), xycoords=("data", "axes fraction"), textcoords="offset points", color="dimgrey")
    first.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="target/release/nearprint-bench", help="the binary")
    parser.add_argument("--work", type=Path, default=Path("judge-work"), help="folder for what is measured")
    parser.add_argument("--results", type=Path, default=Path("evidence/judge/results.jsonl"), help="one JSON object a line")
    parser.add_argument("--page", type=Path, help="write the tables of this page")
    parser.add_argument("--plot", type=Path, help="draw this plot")
    parser.add_argument("--no-seeds", action="store_true", help="leave out what is measured with other seeds")
    parser.add_argument("--false-pairs", type=int, metavar="N", help="print up to N false pairs of each set, and nothing else")
    parser.add_argument("sets", type=Path, nargs="*", metavar="SET")
    arguments = parser.parse_args()
    folders = {folder.name: folder for folder in arguments.sets}
    if folders:
        arguments.work.mkdir(parents=True, exist_ok=True)
        data = Data(arguments, folders, None)
        if arguments.false_pairs:
            print_false(data, folders, arguments.false_pairs)
            return
        lines = [*judges(data), *sweeps(data), *languages(data), *excerpts_found(data), *ways(data), *lost(data),
                 *([] if arguments.no_seeds else seeds(arguments, folders))]
        arguments.results.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    lines = [json.loads(line) for line in arguments.results.read_text(encoding="utf-8").splitlines()]
    if arguments.page:
        write_page(arguments.page, lines)
    if arguments.plot:
        plot(arguments.plot, lines)


if __name__ == "__main__":
    main()
