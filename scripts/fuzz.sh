#!/bin/sh
# Run every fuzz target for some seconds: scripts/fuzz.sh SECONDS [TARGET…]
#
# libFuzzer with coverage counters and without a sanitizer, which works with the stable compiler. What it finds is left in
# fuzz/artifacts, inputs that reached something new in fuzz/corpus; neither is in the repository. A line for each target says
# how many inputs were tried and how many edges of the code they reached.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=${*:-model_file encoding_notes settings_toml settings_json csv parquet archive splits server}

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# With a target, build scripts have no counters.
cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$host" --bins
built=fuzz/target/$host/release
mkdir -p fuzz/corpus fuzz/artifacts
BAYESPC_SEEDS=fuzz/corpus "$built/seeds" -runs=0 >/dev/null 2>&1
# Files that others write reach more of the code.
[ ! -x .venv/bin/python ] || .venv/bin/python scripts/fuzz_seeds.py fuzz/corpus/parquet

status=0
for target in $targets; do
    mkdir -p "fuzz/corpus/$target"
    log=fuzz/artifacts/$target.log
    if "$built/$target" -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=20 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target-" "fuzz/corpus/$target" >"$log" 2>&1; then
        found=
    else
        found=" FAILED: see $log"
        status=1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    printf '%-15s %10s executions %8s edges%s\n' "$target" "${runs:-?}" "${edges:-?}" "$found"
done
rm -f /dev/shm/bayespc-fuzz-* 2>/dev/null || true
exit $status
