#!/bin/sh
# The README's benchmark row: default settings on the six tables, standard 20 splits, as a Markdown table.
#   scripts/benchmark.sh [LEARNER]      bpc (default), bbb, pc, backprop or random-features
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet -p bayespc-cli
echo '| data | RMSE | LL | 90 % coverage | seconds per fit |'
echo '|---|---|---|---|---|'
for name in housing concrete energy power wine yacht; do
    target/release/bayespc evaluate "$name" --learner "${1:-bpc}" --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
pair = lambda key: "{mean:.3f} ± {se:.3f}".format(**r[key])
print("| {} | {} | {} | {:.3f} | {:.1f} |".format(r["dataset"], pair("rmse"), pair("log_density"), r["coverage_90"], r["seconds_fit"]))'
done
