#!/bin/sh
# Put the generated tables of a reproduction run into docs/reproduction.md: scripts/tables.sh OUT
set -eu
out=${1:-out}
cd "$(dirname "$0")/.."
marker='<!-- generated below by scripts/tables.sh -->'
page=docs/reproduction.md
head=$(awk -v m="$marker" '$0 == m { exit } { print }' "$page")
{
    printf '%s\n\n%s\n' "$head" "$marker"
    for name in table1 figure1 figure2 ablation benchmark gaps classes tuning choices; do
        [ -f "$out/$name.md" ] || continue
        printf '\n## %s\n\n' "$name"
        cat "$out/$name.md"
    done
} >"$page.new"
mv "$page.new" "$page"
