#!/usr/bin/env bash
# dbt-core 1.11.16: if the entry of a model in YAML is parsed before its SQL file exists, partial
# parsing, which is on by default, adds the new file without its entry. The model has no contract,
# no description, no config of the entry and no data tests, in each later run, until the YAML or
# the whole project is parsed again: `dbt build` is green because the tests are missing. A singular
# data test written before its model is lost in the same way. (dbt-core issue 10461 has the tests.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dbt-core==1.11.16 dbt-duckdb==1.10.1
mkdir -p "$folder/project/models" "$folder/project/tests"
cd "$folder/project"
cat >dbt_project.yml <<'YAML'
name: shop
version: 1.0.0
profile: shop
YAML
cat >profiles.yml <<'YAML'
shop:
  target: dev
  outputs:
    dev: {type: duckdb, path: ':memory:'}
YAML
cat >models/orders.yml <<'YAML'
models:
  - name: orders
    description: One row per order
    config: {contract: {enforced: true}}
    columns:
      - {name: order_id, data_type: int, data_tests: [unique, not_null]}
YAML
echo "select 1 as n from {{ ref('orders') }} where false" >tests/no_odd_orders.sql
export DBT_SEND_ANONYMOUS_USAGE_STATS=false

state() {
    "$folder/venv/bin/dbt" --quiet parse "$@"
    "$folder/venv/bin/python" - <<'PYTHON'
import json

nodes = json.load(open("target/manifest.json"))["nodes"]
orders = nodes["model.shop.orders"]
tests = sorted(it["name"] for it in nodes.values() if it["resource_type"] == "test")
print(orders["contract"]["enforced"], repr(orders["description"]), tests)
PYTHON
}

"$folder/venv/bin/dbt" --quiet parse
echo "select 1 as order_id" >models/orders.sql
partial=$(state)
again=$(state)
whole=$(state --no-partial-parse)
printf '%s\n' "partial parsing: $partial" "the next run:    $again" "whole project:   $whole"
[ "$partial" = "False '' []" ]
[ "$again" = "$partial" ]
[ "$whole" = "True 'One row per order' ['no_odd_orders', 'not_null_orders_order_id', 'unique_orders_order_id']" ]
