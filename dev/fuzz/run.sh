#!/usr/bin/env bash
# Fuzzes each target for so long, one after another, and prints a line for each.
#
# usage: run.sh SECONDS [TARGET…]    (targets: normalize, tokenize-KIND, page_header, footer, deltas, jsonl, commit; all without any)
#
# Exit code 1 if any crashed, or ran nothing. What crashed it is in artifacts/TARGET, its log in artifacts/TARGET.log.
set -euo pipefail
cd "$(dirname "$0")"

KINDS=(bigrams mixed jieba words whitespace char_ngrams word_char_ngrams utf16_ngrams byte_pieces ascii_words cppjieba
    ascii_whitespace full_word_char_ngrams)
[[ ${1:-} =~ ^[0-9]+$ ]] || { sed -n '4p' "$0" >&2; exit 64; }
seconds=$1
shift
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(normalize "${KINDS[@]/#/tokenize-}" page_header footer deltas jsonl commit)

# A stable toolchain takes the fuzzer's flags too, when told so.
export RUSTC_BOOTSTRAP=1
cargo fuzz build --sanitizer none
python3 make_seeds.py corpus
mkdir -p artifacts

failed=0
for target in "${targets[@]}"; do
    log=artifacts/$target.log
    mkdir -p "artifacts/$target"
    started=$SECONDS
    # The fuzzer's exit code is that of a crash; a run of this length ends by itself.
    TOKENIZER=${target#tokenize-} cargo fuzz run --sanitizer none "${target%%-*}" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=20 -dict=text.dict -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" >"$log" 2>&1 && crashes=0 || crashes=1
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
    [[ ${executions:-0} -gt 0 && $crashes == 0 ]] || failed=1
    echo "$target: $((SECONDS - started)) s, ${executions:-0} executions, crashes: $crashes, ${coverage:-cov: 0}"
done
exit "$failed"
