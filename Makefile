# Two commands do all set-up: `make demo` and `make test`. Everything else is for developers.

# Benchmark data beside the project, if there are any; tests that need them are skipped otherwise.
DATA ?= $(firstword $(wildcard ../shared/data))
ifneq ($(DATA),)
export BAYESPC_DATA ?= $(abspath $(DATA))
endif
OUT ?= out
GOLDEN ?= ../bayespc-golden.json

.PHONY: demo test test-slow check lint rust python page wheel docs golden-record golden-compare soak fuzz figures size peers peers-tables peers-env clean

demo: ## fit the built-in wine table, print metrics, write a model file and a report
	@mkdir -p $(OUT)
	@echo "1. Build the command: some minutes the first time, seconds afterwards."
	cargo build --release -p bayespc-cli --no-default-features
	@echo "2. Fit the built-in wine table: choose among some forty networks by cross-validation. Seconds."
	target/release/bayespc fit wine --target quality --out $(OUT)/wine.safetensors --report $(OUT)/wine.html
	@echo "3. Open $(OUT)/wine.html in a browser, or go on with your own table:"
	@echo "   target/release/bayespc fit FILE.csv --target COLUMN --report $(OUT)/mine.html"
	@echo "   This build has all but the server: cargo install --path crates/bayespc-cli gives you that too."

# What Python needs and the browser come from the network while Rust compiles; `python` and `page` say what is wrong if
# that fails.
test: ## everything CI runs
	@(sh scripts/python-env.sh --tools; sh scripts/browser_tests/run.sh --install) >/dev/null 2>&1 & \
	$(MAKE) --no-print-directory lint rust; status=$$?; wait; exit $$status
	@$(MAKE) --no-print-directory python page

test-slow: ## Python tests that take minutes: all of scikit-learn's checks on the default estimators
	sh scripts/python-env.sh --dev
	.venv/bin/python -m pytest -q -m slow python/tests

check: test

# The feature only sees to it that what clippy has checked is not checked again.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet --features bayespc-python/as-tested
	@if command -v cargo-deny >/dev/null; then cargo deny --log-level error check bans licenses sources; else echo "licences and sources of dependencies not checked: cargo install cargo-deny"; fi

rust:
	cargo test --workspace --quiet

python: ## the package in .venv, its tests, types and examples
	sh scripts/python-env.sh --dev
	.venv/bin/ruff check python examples scripts
	.venv/bin/ruff format --check --quiet python examples scripts
	.venv/bin/pyright --pythonpath .venv/bin/python
	.venv/bin/python -m pytest -q python/tests
	.venv/bin/python -m pytest -q --doctest-modules --pyargs bayespc

page: ## the server's page in a real browser; installs Chromium as root, else says that it was skipped
	sh scripts/browser_tests/run.sh

wheel: ## dist/*.whl, tried in a fresh environment
	sh scripts/python-env.sh --dist
	rm -f dist/bayespc-*.whl
	.venv/bin/maturin build --profile dist --quiet --interpreter .venv/bin/python --out dist
	sh scripts/check_wheel.sh dist/bayespc-*.whl

docs: ## the documentation site, in site/; links are checked
	sh scripts/docs.sh

figures: ## every figure and table of the paper; hours without QUICK=1
	cargo run --release -p bayespc-cli -- reproduce all --out $(OUT) $(if $(QUICK),--quick)

golden-record: ## write what the golden fits predict here, bit for bit, to GOLDEN=../bayespc-golden.json; minutes
	BAYESPC_GOLDEN_RECORD=$(abspath $(GOLDEN)) cargo test --release -p bayespc-cli --test golden

golden-compare: ## compare the golden fits with that file; only on the machine that wrote it
	BAYESPC_GOLDEN_COMPARE=$(abspath $(GOLDEN)) cargo test --release -p bayespc-cli --test golden

soak: ## what is not for every day: kill the command for MINUTES=5 and see what is left, load the server, try hostile tables
	cargo build --release -p bayespc-cli
	python3 scripts/soak/crashes.py --command target/release/bayespc --minutes $${MINUTES:-5} $(if $(wildcard .venv/bin/python),--python .venv/bin/python)
	python3 scripts/soak/load.py --command target/release/bayespc
	BAYESPC_HOSTILE=$${HOSTILE:-2000} cargo test --release -p bayespc --test suite hostile

fuzz: ## every fuzz target for SECONDS=60 of a core, JOBS=1 side by side
	python3 scripts/fuzz.py --seconds $${SECONDS:-60} --jobs $${JOBS:-1}

size: ## lines, files, settings, errors, circles of modules per crate, beside their budgets; seconds
	python3 scripts/size.py

peers-env:
	[ -x .venv-peers/bin/python ] || $${PYTHON:-python3} -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check jax numpy scikit-learn scipy ngboost xgboost catboost

peers: peers-env ## an MNIST epoch here and in JAX and scikit-learn, and the ratios; needs MNIST (DATA=folder)
	@mkdir -p $(OUT)
	cargo build --release -p bayespc-bench
	.venv-peers/bin/python scripts/peers.py > $(OUT)/peers.json
	cargo run --release --quiet -p bayespc-bench -- mnist --learner bpc,backprop,pc --rule feedback,relaxation --peers $(OUT)/peers.json

peers-tables: peers-env ## other programs on the benchmark's splits and on gaps, some hours; needs the tables (DATA=folder)
	.venv-peers/bin/python scripts/peers_tables.py $(OUT)
	.venv-peers/bin/python scripts/peers_tables.py --gaps $(OUT)
	@echo "records: $(OUT)/benchmark-peers.csv and gaps-peers.csv; bayespc reproduce benchmark|gaps --out $(OUT) shows them beside ours"

clean:
	rm -rf $(OUT) dist site .venv .venv-peers .venv-docs fuzz/target fuzz/corpus fuzz/artifacts
	cargo clean
