#!/usr/bin/env bash
# Fuzzes each target for so long, as many at once as there are processors (or JOBS), and prints a line for each.
#
# usage: run.sh SECONDS [TARGET…]    (targets: normalize, tokenize-KIND, page_header, footer, deltas, jsonl, commit; all without any)
#
# Exit code 1 if any crashed, or ran nothing. What crashed it is in artifacts/TARGET, its log in artifacts/TARGET.log.
# Installs cargo-fuzz into target/tools of the checkout if there is none.
set -euo pipefail
cd "$(dirname "$0")"

KINDS=(pairs bigrams mixed jieba words whitespace char_ngrams word_char_ngrams utf16_ngrams byte_pieces ascii_words cppjieba
    ascii_whitespace full_word_char_ngrams)
[[ ${1:-} =~ ^[0-9]+$ ]] || { sed -n '4p' run.sh >&2; exit 64; }
seconds=$1
shift
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(normalize "${KINDS[@]/#/tokenize-}" page_header footer deltas jsonl commit)

tools=$PWD/../../target/tools
export PATH=$PATH:$tools/bin
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked --debug --root "$tools" --target-dir "$tools/build" >&2 || {
    echo "run.sh: NOT CHECKED: fuzz targets (cannot install cargo-fuzz)" >&2
    exit 0
}
# A stable toolchain takes the fuzzer's flags too, when told so.
export RUSTC_BOOTSTRAP=1
cargo fuzz build --fuzz-dir . --sanitizer none
python3 make_seeds.py corpus
mkdir -p artifacts

fuzz() {
    local target=$1 log=artifacts/$1.log started=$SECONDS crashes executions coverage
    mkdir -p "artifacts/$target"
    # The fuzzer's exit code is that of a crash; a run of this length ends by itself.
    TOKENIZER=${target#tokenize-} cargo fuzz run --fuzz-dir . --sanitizer none "${target%%-*}" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=20 -dict=text.dict -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" >"$log" 2>&1 && crashes=0 || crashes=1
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
    echo "$target: $((SECONDS - started)) s, ${executions:-0} executions, crashes: $crashes, ${coverage:-cov: 0}"
    [[ ${executions:-0} -gt 0 && $crashes == 0 ]]
}

failed=0 running=0
for target in "${targets[@]}"; do
    if [[ $running -ge ${JOBS:-$(nproc)} ]]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" &
    running=$((running + 1))
done
while [[ $running -gt 0 ]]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
