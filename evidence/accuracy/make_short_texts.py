#!/usr/bin/env python3
"""Makes short texts of which no two are related: what a floor of features, and the distances, must keep apart.

usage: make_short_texts.py [--count N] [--seed S] --out DIR

N texts of 1 to 20 characters: Chinese, words, numbers, emoji, punctuation, and slices of these side by side. Unrelated by how they are
made: each word, each number and each two neighbouring Han characters stand in one text only. No two texts are the same after
normalisation. Columns id and text, one file DIR/part-00000.jsonl. An id says what its text is made of.
"""

import argparse
import json
import random
import unicodedata
from pathlib import Path

LONGEST = 20
HAN = [chr(code) for code in range(0x4E00, 0x9FA6)]
EMOJI = [chr(code) for code in (*range(0x1F600, 0x1F645), *range(0x1F300, 0x1F321), *range(0x1F400, 0x1F43F))]
PUNCTUATION = list("!?.,:;-+*/=#%@~^|()[]{}<>\"'$") + list("。，！？、；：“”‘’（）《》【】…—·￥★→※")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
KINDS = ["han", "words", "numbers", "emoji", "punctuation", "mixed"]
WEIGHTS = [8, 3, 2, 1, 1, 3]
ATTEMPTS = 1000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=10_000, metavar="N")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, required=True)
    options = arguments.parse_args()

    maker = Maker(random.Random(options.seed))
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "part-00000.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number in range(options.count):
            kind, text = maker.text()
            file.write(json.dumps({"id": f"{kind}-{number:05}", "text": text}, ensure_ascii=False) + "\n")
    print(f"{path}: {options.count} documents")


class Maker:
    """Draws texts. What a text used up no later one gets."""

    def __init__(self, generator):
        self.random = generator
        self.used = set()
        self.texts = set()

    def text(self):
        for _ in range(ATTEMPTS):
            kind = self.random.choices(KINDS, WEIGHTS)[0]
            text, tokens = self.draw(kind, self.random.randint(1, LONGEST))
            normalized = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
            # Spaces that are in one text only would make the same words look like two texts.
            plain = normalized.replace(" ", "")
            repeated = len(set(tokens)) < len(tokens) or not self.used.isdisjoint(tokens)
            if plain and not repeated and plain not in self.texts:
                self.used.update(tokens)
                self.texts.add(plain)
                return kind, text
        raise SystemExit("no text is left to be made: ask for fewer")

    def draw(self, kind, length):
        """A text of at most `length` characters and the tokens that must be its own."""
        if kind == "mixed":
            return self.draw_mixed(length)
        if kind in ("words", "numbers"):
            return self.draw_words(LETTERS if kind == "words" else "0123456789", length)
        text = "".join(self.random.choices({"han": HAN, "emoji": EMOJI, "punctuation": PUNCTUATION}[kind], k=length))
        if kind != "han":
            return text, []
        return text, [text] if length == 1 else [text[at:at + 2] for at in range(length - 1)]

    def draw_words(self, characters, length):
        words = []
        while length > 0:
            word = "".join(self.random.choices(characters, k=min(length, self.random.randint(1, 7))))
            words.append(word)
            length -= len(word) + 1
        return " ".join(words), words

    def draw_mixed(self, length):
        texts, tokens = [], []
        while length > 0:
            kind = self.random.choice(KINDS[:-1])
            text, own = self.draw(kind, self.random.randint(1, min(length, 8)))
            # A space keeps the end of one slice from joining the beginning of the next.
            texts.append(text)
            tokens += own
            length -= len(text) + 1
        return " ".join(texts), tokens


if __name__ == "__main__":
    main()
