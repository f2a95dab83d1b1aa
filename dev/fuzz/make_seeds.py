#!/usr/bin/env python3
"""Writes the seed corpora of the fuzz targets: texts made up for what is hard about text, each under a few settings.

usage: make_seeds.py DIR    (writes a folder for each target)
"""

import sys
from pathlib import Path

KINDS = ("bigrams mixed jieba words whitespace char_ngrams word_char_ngrams utf16_ngrams byte_pieces ascii_words"
         " cppjieba ascii_whitespace full_word_char_ngrams").split()

TEXTS = {
    "english": "The quick brown fox can't jump over 3.14 lazy dogs at foo_bar.example.org, twice twice TWICE.",
    "chinese": "北京市朝阳区的天气今天很好，我们去公园散步。研究生命的起源 1号店 T恤衫 张华说：“好好学习”！",
    "mixed": "用Rust写的SimHash去重工具v0.1.0，支持UTF-8和GBK；速度100%！ foo北京bar 阿Q 々〇二〇",
    "rare_han": "\u3400\u4dbf\U00020000\U0002a6df\U0003134a\uf900\ufa0e\u3005\u3007\u9fff\u4e00",
    "kana": "ひらがなカタカナ半角ｶﾞｷﾞｸﾞ゛゜か\u3099き\u309aー々",
    "marks": "e\u0301 a\u0323\u0307 q\u0307\u0323 \u0301start n\u0303o o\u0302\u0301 中\u0301文\u0323 \u0345\u0399\u0308",
    "jamo": "한국어 \u1112\u1161\u11ab\u1100\u1161 각\u11a8 \u1100\u1161\u11a7 ᄀ\u302e ㄱㅏ ﾡﾢ",
    "indic": "क्षत्रिय নমস্কার தமிழ் ภาษาไทย \u0cc6\u0cc2\u0cd5 \u0dd9\u0dcf\u0dca ពាក្យ བོད་ཡིག",
    "hebrew_arabic": "\u202eשלום \u200fעולם\u05b7\u202c مرحبا \u061cبالعالم \u0640\u064b \ufdfa \u2067x\u2069",
    "zero_width": "in\u200bvi\u200csi\u200dble\ufeff so\u00adft\u2060 e\u200b\u0301 a\u034f\u0301 \ufe0f\U000e0041\U000e007f",
    "control": "a\0b\x01c\x1fd\x7fe\x85f\u2028g\u2029h\r\n\t\x0b\x0ci\u00a0\u1680\u2003\u202f\u205f\u3000j\0",
    "entities": "&amp;lt; &lt;b&gt; &#20013;&#x6587; &nbsp; &bogus; &#xD800; &#0; &#x110000; &amp &; &#; &#x; AT&T &quot;&#39;",
    "half_surrogates": "\\ud83d\\ude00 \ufffd\ufffd \ud7ff\ue000 \uffff\ufffe \U0010ffff 😀😁",
    "emoji": "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇨🇳🇩🇪🇫 1️⃣ ❤️ #️⃣ ☎︎",
    "case": "Straße STRASSE ΣΊΣΥΦΟΣ İıſK Åﬀﬁﬃ ǅ ᾈ ᾳ ẞ Ꭰ ꭰ ϴ ΐ ŉ",
    "compatibility": "Ａ１，！ ①②㎏㍿ ﬁ ½ ² ｱ ㈱ 𝐀𝕏𝟘 ﷽ ㌀ ﹫ ﾞ ¨ ´ ͺ ΄ ‾",
    "exclusions": "\u0958\u0344\u0340\u0341\u0374\u037e\u0387\u1fef\u2126\u212a\ufb1d\ufb4e\u2adc\U0001d15e",
    "words": "can't l'été 3,14 a.b a:b 1.2.3 __ _a_ a_1 a-b don’t A·B x\u0308y 中a1あ  \u2060 ß.1 א\"ב א'ב",
    "punctuation": "!?…—－《》「」【】★→※。，、；：“”‘’（）·~`@#$%^&*()_+-=[]{}|\\:;\"'<>,./",
    "spaces": " " * 70 + "a  b" + "\t " * 40 + "c ",
    "run_a": "a" * 3000,
    "run_han": "中" * 1000,
    "run_han_varied": "的一是不了人我在有他这中大来上国" * 60,
    "run_marks": "a" + "\u0301\u0323\u0345" * 600,
    "run_only_marks": "\u0301" * 1200,
    "run_jamo": "\u1100\u1161\u11a8" * 300,
    "run_zero_width": "\u200b" * 900 + "x" + "\u200d" * 300,
    "run_digits": "1234567890." * 250,
    "run_emoji": "👨‍👩‍👧‍👦" * 100,
    "run_entities": "&amp;" * 500,
    "ascii_blocks": "x" * 31 + " y" + "z" * 32 + "  " + "W" * 33 + " " + "é" + "v" * 64,
    "empty": "",
}

# Settings of `normalize`: its one byte. Of `tokenize`: eight bytes (see src/tokenize.rs).
NORMALIZE = [0x80, 0x81, 0x7F, 0x3F]
TOKENIZE = [bytes([0x01, 2, 1, 1, 0, 0, 2, 0]), bytes([0x02, 4, 0, 2, 3, 1, 3, 1]), bytes([0x7D, 1, 3, 1, 7, 4, 2, 5])]

# Headers and footers of Parquet, as writers write them, and with what readers differ over.
PAGE_HEADERS = {
    "data": "1500 1580 0115 8001 2c15 1015 0015 0615 0600 00",
    "data_with_statistics": "1500 1580 0115 8001 2c15 1015 0015 0615 061c 1801 6218 0161 1602 0000 00",
    "checksum": "1500 1580 0115 8001 15fe ffff ff0f 1c15 1015 0015 0615 0600 00",
    "dictionary": "1504 1580 0115 8001 4c15 1015 0000 00",
    "data_2": "1506 1580 0115 8001 5c15 1015 0015 1015 0015 0415 0000 00",
    "data_2_unpacked": "1506 1580 0115 8001 5c15 1015 0015 1015 0015 0415 0012 0000",
    "index": "1502 1580 0115 8001 00",
    "beyond_16_bits": "1500 1508 1508 0584 8008 feff ffff 0f3c 1502 1500 1506 1506 0000",
    "list_of_booleans": "1500 1508 1508 2c15 0215 0015 0615 0659 3201 0100 0000",
}
FOOTERS = {
    "no_rows": "1504 192c 4806 7363 6865 6d61 1502 0015 0425 0018 0166 251c 0016 0019 0c28 0163 00",
    "one_column": "1504 192c 4806 7363 6865 6d61 1502 0015 0425 0018 0166 251c 0016 1019 1c19 1c26 081c 1504 1915 0019"
    " 1801 6615 0016 1016 a801 16a8 0126 0800 0016 a801 1610 0028 0163 00",
}
# A number of values, then a page: block size 128, 4 miniblocks, count, first value, then deltas.
DELTAS = {
    "one": "01 8001 04 01 0e",
    "equal": "05 8001 04 05 02 00 00000000",
    "widths": "09 8001 04 09 00 01 02030000 e4e4e4e4e4e4e4e4",
}
LINES = {
    "plain": '{"id": "a", "text": "some text", "rank": 3}',
    "number": '{"id": 12, "text": null}',
    "twice": '{"text": "x", "id": "b", "text": "y"}',
    "nested": '{"id": "c", "other": {"text": ["z", 1.5e3, true]}, "text": "\\u4e2d\\ud83d\\ude00"}',
    "half": '{"id": "d", "text": "\\ud83d"}',
}
COMMITS = Path(__file__).resolve().parents[2] / "crates/cli/tests/data/store-v2/store/_commits"


def write_hex(folder, named):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in named.items():
        (folder / name).write_bytes(bytes.fromhex(content))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    write_hex(root / "page_header", PAGE_HEADERS)
    write_hex(root / "footer", FOOTERS)
    write_hex(root / "deltas", DELTAS)
    for target in ("jsonl", "commit"):
        (root / target).mkdir(parents=True, exist_ok=True)
    for name, line in LINES.items():
        (root / "jsonl" / name).write_text(line)
    for commit in COMMITS.glob("*.json"):
        (root / "commit" / commit.stem).write_bytes(commit.read_bytes())
    (root / "commit" / "pruned").write_text('{"pruned":7}\n')
    targets = {"normalize": [bytes([settings]) for settings in NORMALIZE]}
    targets.update({f"tokenize-{kind}": TOKENIZE for kind in KINDS})
    for target, settings in targets.items():
        folder = root / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in TEXTS.items():
            for number, header in enumerate(settings):
                (folder / f"seed-{name}-{number}").write_bytes(header + text.encode("utf-8", "surrogatepass"))
        (folder / "seed-invalid").write_bytes(settings[0] + b"a\xff\xc3(\xe4\xb8 \xed\xa0\x80 \xf0\x9f\x98 \xc0\x80z")


if __name__ == "__main__":
    main()
