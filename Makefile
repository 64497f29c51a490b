# Every target installs what it needs. `make demo` and `make test` are all that a newcomer has to know.
SHELL := bash
UV = $(shell bash scripts/get-uv.sh)
RUN = $(UV) run --no-sync

.PHONY: sync demo test check format schema lock bench faults

.venv/.synced: pyproject.toml
	@test -n "$(UV)"
	@$(UV) sync --quiet
	@touch $@

sync: .venv/.synced

demo: sync  ## Run StarForge on this machine and train an example on it; KEEP=1 leaves it running.
	@$(RUN) starforge demo $(if $(KEEP),--keep)

test: sync  ## Everything that this machine can run; ARGS goes to pytest.
	@$(RUN) pytest $(ARGS)

check: sync  ## What has to hold at every commit.
	@$(RUN) ruff check .
	@$(RUN) ruff format --check --quiet .
	@$(RUN) mypy
	@$(RUN) lint-imports --no-logo 2>&1 | grep -v '^$$' | tail -8; exit $${PIPESTATUS[0]}
	@$(RUN) python scripts/schema.py --check

format: sync
	@$(RUN) ruff check --fix --quiet .
	@$(RUN) ruff format --quiet .

schema: sync  ## Write schema.graphql from the code.
	@$(RUN) python scripts/schema.py

lock:  ## Write the newest versions that fit into pyproject.toml, which pins them.
	@$(UV) run --no-project python scripts/lock.py "$(UV)"

bench: sync
	@$(RUN) python tests/bench/run.py $(ARGS)

faults: sync  ## Break what StarForge stands on, one thing after the other, on the cluster of CLUSTER_ENV; see docs/reliability.md.
	@PYTHONPATH=scripts/e2e $(RUN) python -m tests.e2e.faults $(or $(ARGS),--write --ttl)
