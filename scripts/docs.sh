#!/bin/sh
# Build the documentation site into site/: the pages of docs/, the Python reference from docstrings, and rustdoc beside
# them. Needs Python and cargo; makes .venv-docs for its tools.
set -eu
cd "$(dirname "$0")/.."
tools="mkdocs-material mkdocstrings[python]"
[ -x .venv-docs/bin/python ] || "${PYTHON:-python3}" -m venv .venv-docs
wanted="$tools $(cksum <scripts/constraints.txt)"
if [ "$(cat .venv-docs/tools 2>/dev/null || true)" != "$wanted" ]; then
    # shellcheck disable=SC2086 # a list of words
    .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt $tools
    printf '%s\n' "$wanted" >.venv-docs/tools
fi
NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
cargo doc --no-deps --quiet -p bayespc -p bayespc-data -p bayespc-serve
rm -rf site/rust
cp -R target/doc site/rust
echo "site/index.html is the documentation; site/rust/bayespc/index.html that of the library"
