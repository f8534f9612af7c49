#!/bin/sh
# Make .venv in the project if it is missing, and install the tools and the package into it.
#
#   scripts/python-env.sh            build the wheel in release mode and install it
#   scripts/python-env.sh --dev      build with the quicker dev profile, from what `cargo test --workspace` has compiled
#   scripts/python-env.sh --tools    install the tools only
#   scripts/python-env.sh --dist     build as it is given to others, with link-time optimisation
#
# Safe to run again: tools are installed when their list or its versions have changed, and the wheel is reinstalled when
# building gave another one. PYTHON names the interpreter (python3).
set -eu
cd "$(dirname "$0")/.."

case ${1:-} in
--dev) profile="--profile dev --features as-tested" ;;
--dist) profile="--profile dist" ;;
*) profile=--release ;;
esac

# Their versions are in constraints.txt.
tools="maturin numpy scikit-learn pandas openpyxl polars pyarrow matplotlib tqdm ngboost onnx onnxruntime shap dask distributed duckdb nbformat pytest ruff pyright playwright tritonclient[http] openapi-spec-validator"
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
wanted="$tools $(cksum <scripts/constraints.txt)"
if [ "$(cat .venv/tools 2>/dev/null || true)" != "$wanted" ]; then
    # Most of what comes is never imported: what is gets compiled then.
    # shellcheck disable=SC2086 # a list of words
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint scripts/constraints.txt $tools
    printf '%s\n' "$wanted" >.venv/tools
fi
[ "${1:-}" != --tools ] || exit 0

wheels=target/wheels/dev-env
rm -rf "$wheels"
# shellcheck disable=SC2086 # a list of words
.venv/bin/maturin build $profile --quiet --interpreter .venv/bin/python --out "$wheels"
wheel=$(echo "$wheels"/bayespc-*.whl)
digest=$(.venv/bin/python -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$wheel")
if [ "$(cat .venv/wheel 2>/dev/null || true)" != "$digest" ]; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
    printf '%s\n' "$digest" >.venv/wheel
fi
.venv/bin/python -c 'import bayespc; print("bayespc", bayespc.__version__, "is installed in .venv")'
