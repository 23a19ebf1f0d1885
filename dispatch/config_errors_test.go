package dispatch

import (
	"bytes"
	"strings"
	"testing"
)

// The parts that most broken files share.
const (
	goodRail   = "rails: { a: { adapter: sandbox } }\n"
	goodAction = "action_types: { pay: { rail: a, effect: charge, schema: { type: object } } }\n"
	httpRail   = "rails:\n  a:\n    adapter: http\n    base_url: https://a.example\n    send: { path: /x }\n"
)

// Each broken file, and every line that is said about it.
var brokenConfigs = []struct {
	name, text string
	want       []string
}{
	{"not yaml", "rails: [\n", []string{
		`h.yaml:1: is not YAML: sequence end token ']' not found`,
	}},
	{"a tab for indentation", "rails:\n\ta: 1\n", []string{
		`h.yaml:2: is not YAML: found character '\t' that cannot start any token`,
	}},
	{"bytes that are not text", "rails: {}\njobs: \xff{}\n", []string{
		`h.yaml:2: holds bytes that are not text in UTF-8`,
	}},
	{"two documents", "jobs: {}\n---\njobs: {}\n", []string{
		`h.yaml:3: holds a second document; write one`,
	}},
	{"a list at the top", "- rails\n", []string{
		`h.yaml:1: must be a mapping of keys to values`,
	}},
	{"unknown key at the top", "jbos: {}\nnonsense: 1\n", []string{
		`h.yaml:1: jbos: unknown key; did you mean jobs?`,
		`h.yaml:2: nonsense: unknown key; there are rails, action_types, policy, currencies, notify, runs, tenants, timing, limits, jobs`,
	}},
	{"unknown key of a rail", httpRail + "    tiemout: 10s\n", []string{
		`h.yaml:6: rails.a.tiemout: unknown key; did you mean timeout?`,
	}},
	{"unknown key in another case", httpRail + "    Timeout: 10s\n", []string{
		`h.yaml:6: rails.a.Timeout: unknown key; did you mean timeout?`,
	}},
	{"unknown key in a block of a rail", httpRail + "    dedupe: { by: none, retain: 1h }\n", []string{
		`h.yaml:6: rails.a.dedupe.retain: unknown key; there are by, header, body, retention, scope, replay_marker`,
	}},
	{"certificates that are not there", httpRail + "    tls: { cert: nowhere.pem, key: nowhere.key, ca: \"${A}\" }\n", []string{
		`h.yaml:6: rails.a.tls.cert: "nowhere.pem" there is no such file`,
		`h.yaml:6: rails.a.tls.key: "nowhere.key" there is no such file`,
		`h.yaml:6: rails.a.tls.ca: ${A}: the environment has no such variable`,
	}},
	{"unknown keys of a credential", httpRail + "    auth: { bearer: 5, basic: { user: a, password: b, realm: c } }\n", []string{
		`h.yaml:6: rails.a.auth.bearer: is not text; put it into quotes`,
		`h.yaml:6: rails.a.auth.basic.realm: unknown key; there are user, password`,
	}},
	{"a list that cannot be read on", httpRail + "    stamp: { body: /s }\n    receipt: { id: /id }\n    lookup: { path: \"/x?o={order_id}\", next: { last: /id, parm: after } }\n", []string{
		`h.yaml:8: rails.a.lookup.next.parm: unknown key; did you mean param?`,
		`h.yaml:8: rails.a.lookup.next.param: is missing; name the query parameter that asks for the next page`,
	}},
	{"an encoding that nobody knows", httpRail[:len(httpRail)-len("    send: { path: /x }\n")] + "    send: { path: /x, encoding: xml }\n", []string{
		`h.yaml:5: rails.a.send.encoding: "xml" is not one of json, form`,
	}},
	{"unknown key of an answer", httpRail + "    answers:\n      - { status: [200], means: confirmed }\n      - { status: [200], mean: confirmed, x: 1 }\n", []string{
		`h.yaml:8: rails.a.answers[1].mean: unknown key; did you mean means?`,
		`h.yaml:8: rails.a.answers[1].x: unknown key; there are status, body, header, means, receipt`,
		`h.yaml:8: rails.a.answers[1].means: "" is not one of confirmed, rejected, not_sent, pending, unknown, look`,
	}},
	{"unknown key of an action type", goodRail + "action_types:\n  pay:\n    rail: a\n    efect: charge\n    schema: { type: object }\n", []string{
		`h.yaml:3: action_types.pay.send.path: is missing; give it to the rail or to the action type (effect "pay")`,
		`h.yaml:5: action_types.pay.efect: unknown key; did you mean effect?`,
	}},
	{"unknown key of an overlap", goodRail + "action_types:\n  pay:\n    rail: a\n    schema: { type: object }\n    overlap: { mode: hold, windw: 1h }\n", []string{
		`h.yaml:3: action_types.pay.send.path: is missing; give it to the rail or to the action type (effect "pay")`,
		`h.yaml:6: action_types.pay.overlap.windw: unknown key; did you mean window?`,
	}},
	{"unknown key of a policy row", "policy:\n  - name: x\n    when: {}\n    then: ask\n    role: finance\n", []string{
		`h.yaml:5: policy[0].role: unknown key; there are name, when, then, of, approvals, step_up, reason_required, expires, bulk`,
	}},
	{"unknown condition", "policy:\n  - name: x\n    when:\n      amount_above: 5\n    then: ask\n", []string{
		`h.yaml:4: policy[0].when.amount_above: unknown key; there are action_type, effect, rail, agent, run_id, recipient, currency, amount_over, recipient_new, spent_over, hours`,
	}},
	{"unknown key of spent_over", "policy:\n  - { name: x, when: { spent_over: { amount: 1, currency: EUR, window: 1h, per: agent, each: 1 } }, then: ask }\n", []string{
		`h.yaml:2: policy[0].when.spent_over.each: unknown key; there are amount, currency, window, per`,
	}},
	{"unknown key of a tenant", "tenants:\n  acme:\n    timing: {}\n", []string{
		`h.yaml:3: tenants.acme.timing: unknown key; there are rails, action_types, policy, currencies, notify, runs`,
	}},
	{"unknown keys of timing, limits and runs", "timing: { leese: 1s }\nlimits: { rps: 1 }\nruns: { attempts: 1 }\n", []string{
		`h.yaml:1: timing.leese: unknown key; did you mean lease?`,
		`h.yaml:2: limits.rps: unknown key; there are requests_per_second`,
		`h.yaml:3: runs.attempts: unknown key; there are max_attempts, max_elapsed`,
	}},
	{"unknown job", "jobs: { sweap: \"@every 1s\", night: \"@daily\" }\n", []string{
		`h.yaml:1: jobs.night: unknown job; there are events, lookup, notify, recheck, refunds, seal, statements, sweep`,
		`h.yaml:1: jobs.sweap: unknown job; did you mean sweep?`,
	}},
	{"duplicate key", "jobs: {}\ntiming: {}\njobs: {}\n", []string{
		`h.yaml:3: jobs: is given twice; line 1 has it already`,
	}},
	{"duplicate rail", "rails:\n  a: { adapter: sandbox }\n  a: { adapter: http }\n", []string{
		`h.yaml:3: rails.a: is given twice; line 2 has it already`,
	}},
	{"wrong types everywhere", "rails: 1\naction_types: []\npolicy: {}\ncurrencies: [USDC]\ntenants: x\n", []string{
		`h.yaml:1: rails: must be a mapping of keys to values`,
		`h.yaml:2: action_types: must be a mapping of keys to values`,
		`h.yaml:3: policy: must be a list, such as [a, b]`,
		`h.yaml:4: currencies: must be a mapping of keys to values`,
		`h.yaml:5: tenants: must be a mapping of keys to values`,
	}},
	{"a number for a text", httpRail + "    account: 12345\n", []string{
		`h.yaml:6: rails.a.account: 12345 is not text; put it into quotes`,
	}},
	{"a text for a number", httpRail + "    limits: { quota: many, concurrency: \"8\", max_attempts: 1_000 }\n", []string{
		`h.yaml:6: rails.a.limits.quota: "many" is not a whole number`,
		`h.yaml:6: rails.a.limits.concurrency: "8" is not a whole number`,
		`h.yaml:6: rails.a.limits.max_attempts: "1_000" is not a whole number`,
	}},
	{"numbers that are not whole", "limits: { requests_per_second: 1.5 }\ncurrencies: { USDC: 010 }\n", []string{
		`h.yaml:1: limits.requests_per_second: "1.5" is not a whole number`,
		`h.yaml:2: currencies.USDC: "010" is not a whole number`,
	}},
	{"a number that is too large", "policy:\n  - { name: x, when: { currency: EUR, amount_over: 9223372036854775808 }, then: ask }\n", []string{
		`h.yaml:2: policy[0].when.amount_over: "9223372036854775808" is too large a number`,
	}},
	{"a text for true or false", httpRail + "    allow_private: yes\n", []string{
		`h.yaml:6: rails.a.allow_private: "yes" is not true or false`,
	}},
	{"one value for a list", httpRail + "    answers: [{ status: 200, means: confirmed }]\n", []string{
		`h.yaml:6: rails.a.answers[0].status: must be a list, such as [a, b]`,
	}},
	{"a list for a text", httpRail + "    account: [a]\n", []string{
		`h.yaml:6: rails.a.account: must be a single value, not a list or a mapping`,
	}},
	{"nothing for a value", httpRail + "    account:\n    headers: ~\n", []string{
		`h.yaml:6: rails.a.account: is empty; give it a value or leave it out`,
		`h.yaml:7: rails.a.headers: is empty; give it a value or leave it out`,
	}},
	{"an anchor and an alias", httpRail + "    account: &x a\n    quiet: *x\n", []string{
		`h.yaml:6: rails.a.account: anchors and aliases are not read here; write the value out`,
		`h.yaml:7: rails.a.quiet: anchors and aliases are not read here; write the value out`,
	}},
	{"a tag and a merge key", httpRail + "    account: !!str a\n    <<: { quiet: 1s }\n", []string{
		`h.yaml:6: rails.a.account: tags are not read here; write the value without one`,
		`h.yaml:7: rails.a: holds a key that is not plain text`,
	}},
	{"bad durations", httpRail + "    timeout: 10 secnds\n    quiet: 5\n    pending_for: -1s\n", []string{
		`h.yaml:6: rails.a.timeout: "10 secnds" is not a duration such as 10s`,
		`h.yaml:7: rails.a.quiet: "5" is not a duration such as 10s`,
		`h.yaml:8: rails.a.pending_for: "-1s" is not a duration such as 10s`,
	}},
	{"events that would never be taken", httpRail + "    events:\n      scheme: hmac-sha256\n  b:\n    adapter: http\n    base_url: https://b.example\n    events:\n      scheme: none\n      secret: whsec_hidden\n      stamp: /operation\n" +
		"  c:\n    adapter: http\n    base_url: https://c.example\n    events:\n      scheme: standard-webhooks\n      stamp: /operation\n      secrets:\n        - whsec_c2hvcnQ=\n", []string{
		`h.yaml:7: rails.a.events.scheme: "hmac-sha256" is not one of standard-webhooks, stripe, none`,
		`h.yaml:13: rails.b.events.secret: has no use with scheme: none, which checks no signature`,
		`h.yaml:22: rails.c.events.secrets[0]: is shorter than 24 bytes, which can be guessed`,
	}},
	{"never and zero where they say nothing", httpRail + "    timeout: never\n    pending_for: 0s\n", []string{
		`h.yaml:6: rails.a.timeout: cannot be never`,
		`h.yaml:7: rails.a.pending_for: must be longer than zero`,
	}},
	{"missing environment variable", httpRail + "    headers:\n      Authorization: \"Bearer ${NO_SUCH}\"\n      X-A: ${EMPTY}\n", []string{
		`h.yaml:7: rails.a.headers.Authorization: ${NO_SUCH}: the environment has no such variable`,
		`h.yaml:8: rails.a.headers.X-A: ${EMPTY}: the environment variable is empty`,
	}},
	{"missing secret file", httpRail + "    headers: { A: \"${file:nowhere}\", B: \"${file:empty}\", C: \"${file:}\" }\n", []string{
		`h.yaml:6: rails.a.headers.A: ${file:nowhere}: there is no such file`,
		`h.yaml:6: rails.a.headers.B: ${file:empty}: the file is empty`,
		`h.yaml:6: rails.a.headers.C: ${file:}: names no file`,
	}},
	{"malformed placeholders", httpRail + "    headers: { A: \"${CARD_TOKEN\", B: \"${}\", C: \"${a b}\" }\n", []string{
		`h.yaml:6: rails.a.headers.A: has ${ without }; write ${NAME} or ${file:NAME}`,
		`h.yaml:6: rails.a.headers.B: ${}: is not a name; write ${NAME} or ${file:NAME}`,
		`h.yaml:6: rails.a.headers.C: ${a b}: is not a name; write ${NAME} or ${file:NAME}`,
	}},
	{"a placeholder in a key", httpRail + "    headers: { \"${CARD_TOKEN}\": x }\n", []string{
		`h.yaml:6: rails.a.headers.${CARD_TOKEN}: ${…} is filled in in values only, not in keys`,
	}},
	{"a secret that is no text", httpRail + "    headers: { A: 5551234 }\n", []string{
		`h.yaml:6: rails.a.headers.A: is not text; put it into quotes`,
	}},
	{"a number from the environment that does not fit", "limits: { requests_per_second: \"${RPS}\" }\nruns: { max_attempts: \"${CARD_TOKEN}\" }\n", []string{
		`h.yaml:1: limits.requests_per_second: ${RPS} is less than 1`,
		`h.yaml:2: runs.max_attempts: "${CARD_TOKEN}" is not a whole number`,
	}},
	{"unknown adapter", "rails: { a: { adapter: carrier-pigeon } }\n", []string{
		`h.yaml:1: rails.a.adapter: "carrier-pigeon" is not one of http, stripe, smtp, sandbox`,
	}},
	{"missing base_url", "rails:\n  a: { adapter: http }\n  b: { adapter: http, base_url: ftp://x }\n", []string{
		`h.yaml:2: rails.a.base_url: is missing; write the provider's address, such as https://api.example.com`,
		`h.yaml:3: rails.b.base_url: must begin with https:// or http://`,
	}},
	{"a rail's values", httpRail + "    dedupe: { by: luck }\n    answers:\n      - { status: [200], means: sure }\n      - { status: [500], means: rejected }\n    receipt: { id: id }\n    lookup: { path: /y }\n", []string{
		`h.yaml:6: rails.a.dedupe.by: "luck" is not one of key, natural, none`,
		`h.yaml:8: rails.a.answers[0].means: "sure" is not one of confirmed, rejected, not_sent, pending, unknown, look`,
		`h.yaml:9: rails.a.answers[1].status: 500 is a fault of the provider, which proves nothing; it cannot mean rejected`,
		`h.yaml:10: rails.a.receipt.id: "id" is not a JSON Pointer; it begins with /`,
		`h.yaml:11: rails.a.lookup.path: names no placeholder such as {order_id}, so its answer would not be about one operation`,
	}},
	{"name of a rail", "rails: { \"a b\": { adapter: sandbox } }\n", []string{
		`h.yaml:1: rails.a b: name it with 1 to 63 of A-Z a-z 0-9 _ -`,
	}},
	{"unknown rail", goodRail + "action_types: { pay: { rail: b, effect: charge, schema: { type: object } } }\n", []string{
		`h.yaml:2: action_types.pay.rail: "b" is no rail here; there are a`,
	}},
	{"an action type without rail and schema", "action_types:\n  pay: { effect: charge }\n", []string{
		`h.yaml:2: action_types.pay.schema: is missing; name a file with a JSON Schema, or write one here`,
		`h.yaml:2: action_types.pay.rail: say which rail it goes to`,
	}},
	{"name of an action type", goodRail + "action_types: { \"pay now\": { rail: a, effect: charge, schema: { type: object } } }\n", []string{
		`h.yaml:2: action_types.pay now: name it with 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit`,
	}},
	{"words of an action type", goodRail + "action_types:\n  pay:\n    rail: a\n    effect: charge\n    schema: { type: object }\n    mode: dry\n    overlap:\n      mode: maybe\n      window: 0s\n    cacheable: never\n    refund:\n      action_type: give_back\n      payload: { x: 1 }\n", []string{
		`h.yaml:7: action_types.pay.mode: mode "dry" is unknown; write enforce or observe`,
		`h.yaml:9: action_types.pay.overlap.mode: overlap mode "maybe" is unknown; write hold, ask or off`,
		`h.yaml:10: action_types.pay.overlap.window: is shorter than 1s`,
		`h.yaml:11: action_types.pay.cacheable: cannot be never`,
		`h.yaml:13: action_types.pay.refund.action_type: "give_back" is no action type here; there are pay`,
	}},
	{"an action type without a way to send", goodRail + "action_types:\n  fly:\n    rail: a\n    schema: { type: object }\n", []string{
		`h.yaml:3: action_types.fly.send.path: is missing; give it to the rail or to the action type (effect "fly")`,
	}},
	{"an action type's own way", httpRail + "action_types:\n  pay:\n    rail: a\n    schema: { type: object }\n    send: { method: GET, path: x }\n    receipt: { amounts: roman }\n", []string{
		`h.yaml:10: action_types.pay.send.method: "GET" is not one of POST, PUT, PATCH, DELETE`,
		`h.yaml:10: action_types.pay.send.path: must begin with /`,
		`h.yaml:11: action_types.pay.receipt.amounts: "roman" is not one of minor, decimal`,
	}},
	{"a way that does not go with the rail", httpRail + "    stamp: { body: /op }\naction_types:\n  pay:\n    rail: a\n    schema: { type: object }\n    send: { path: /x, body: none }\n", []string{
		`h.yaml:8: action_types.pay: with rails.a.stamp.body: has no body to go into: send.body is none`,
	}},
	{"a schema that is not there", goodRail + "action_types: { pay: { rail: a, effect: charge, schema: nowhere.json } }\n", []string{
		`h.yaml:2: action_types.pay.schema: "nowhere.json" is not there; put the schema beside the configuration`,
	}},
	{"a schema outside of the directory", goodRail + "action_types:\n  pay: { rail: a, effect: charge, schema: ../x.json }\n  two: { rail: a, effect: charge, schema: /etc/passwd }\n  three: { rail: a, effect: charge, schema: outside/etc/passwd }\n", []string{
		`h.yaml:3: action_types.pay.schema: "../x.json" leads out of the configuration's directory; put the schema beside it`,
		`h.yaml:4: action_types.two.schema: "/etc/passwd" leads out of the configuration's directory; put the schema beside it`,
		`h.yaml:5: action_types.three.schema: "outside/etc/passwd" cannot be read: path escapes from parent`,
	}},
	{"a schema file that is no JSON", goodRail + "action_types: { pay: { rail: a, effect: charge, schema: broken.schema.json } }\n", []string{
		`h.yaml:2: action_types.pay.schema: broken.schema.json: JSON at byte 18: ends in the middle of a value; send the whole of it`,
	}},
	{"a schema file with a bad annotation", goodRail + "action_types: { pay: { rail: a, effect: charge, schema: annotated.schema.json } }\n", []string{
		`h.yaml:2: action_types.pay.schema: annotated.schema.json, /properties/amount/x-role: "amuont" is unknown; write one of amount, currency, recipient, reference, account, customer, refund_of`,
	}},
	{"an inline schema with a bad annotation", goodRail + "action_types:\n  pay:\n    rail: a\n    effect: charge\n    schema:\n      type: object\n      properties:\n        amount:\n          type: integer\n          x-role: amuont\n        note: { type: strin }\n", []string{
		`h.yaml:12: action_types.pay.schema.properties.note.type: fits none of the alternatives that the schema allows`,
		`h.yaml:12: action_types.pay.schema.properties.note.type: must be one of "array", "boolean", "integer", "null", "number", "object", "string"`,
	}},
	{"an inline schema that JSON cannot write", goodRail + "action_types:\n  pay:\n    rail: a\n    effect: charge\n    schema:\n      type: object\n      properties:\n        x: { minimum: 0x10, maximum: .inf, multipleOf: 1_0 }\n", []string{
		`h.yaml:9: action_types.pay.schema.properties.x.minimum: "0x10" is not a number as JSON writes it; write plain decimal digits`,
		`h.yaml:9: action_types.pay.schema.properties.x.maximum: ".inf" is not a number as JSON writes it; write plain decimal digits`,
		`h.yaml:9: action_types.pay.schema.properties.x.multipleOf: "1_0" is not a number as JSON writes it; write plain decimal digits`,
	}},
	{"a bad regular expression", goodRail + "action_types:\n  pay:\n    rail: a\n    effect: charge\n    schema:\n      type: object\n      properties:\n        x:\n          type: string\n          pattern: \"[\"\n", []string{
		`h.yaml:11: action_types.pay.schema.properties.x.pattern: is no valid regex`,
	}},
	{"a policy row without anything", "policy:\n  - {}\n", []string{
		`h.yaml:2: policy[0].when: is missing; write when: {} for a row that fits everything`,
		`h.yaml:2: policy[0]: give it a name`,
		`h.yaml:2: policy[0]: then: "" is not known; use allow, ask or deny`,
	}},
	{"duplicate and empty names of rows", "policy:\n  - { name: x, when: {}, then: ask }\n  - { name: x, when: {}, then: ask }\n  - { name: \" \", when: {}, then: ask }\n", []string{
		`h.yaml:3: policy[1]: row 1 has the same name; give each its own`,
		`h.yaml:4: policy[2]: give it a name`,
	}},
	{"what a row says", "policy:\n  - { name: x, when: {}, then: maybe }\n  - { name: y, when: {}, then: deny, of: finance }\n  - { name: z, when: {}, then: ask, of: [viewer, boss], approvals: 0 }\n", []string{
		`h.yaml:2: policy[0].then: "maybe" is not known; use allow, ask or deny`,
		`h.yaml:3: policy[1]: of, approvals, step_up, reason_required and expires belong to then: ask, not to then: deny`,
		`h.yaml:4: policy[2].approvals: 0 is less than 1`,
		`h.yaml:4: policy[2].of: "viewer" may not decide; use approver, finance or admin`,
		`h.yaml:4: policy[2].of: "boss" may not decide; use approver, finance or admin`,
	}},
	{"unknown names in a row", goodRail + goodAction + "policy:\n  - name: x\n    when:\n      action_type: paye\n      rail: [a, c]\n      effect: mail\n      currency: EURO\n    then: deny\n", []string{
		`h.yaml:6: policy[0].when.action_type: "paye" is no action type here; there are pay`,
		`h.yaml:7: policy[0].when.rail: "c" is no rail here; there are a`,
		`h.yaml:8: policy[0].when.effect: "mail" is no effect here; there are charge`,
		`h.yaml:9: policy[0].when.currency: "EURO" is not in ISO 4217; correct it, or add it to currencies`,
	}},
	{"unknown names in a row, and nothing to choose from", "policy:\n  - { name: x, when: { action_type: pay, rail: a, effect: e }, then: deny }\n", []string{
		`h.yaml:2: policy[0].when.action_type: "pay" is no action type here; there is none`,
		`h.yaml:2: policy[0].when.rail: "a" is no rail here; there is none`,
		`h.yaml:2: policy[0].when.effect: "e" is no effect here; there is none`,
	}},
	{"what may be approved together", "policy:\n  - { name: x, when: {}, then: ask, bulk: { up_to: 5000 } }\n  - { name: y, when: { currency: EUR }, then: allow, bulk: { up_to: 0 } }\n  - { name: z, when: { currency: EUR }, then: ask, bulk: {} }\n", []string{
		`h.yaml:2: policy[0].bulk: needs exactly one currency in when; a ceiling without one says nothing`,
		`h.yaml:3: policy[1].bulk: belongs to then: ask; nobody approves what goes out by itself`,
		`h.yaml:3: policy[1].bulk: up_to must be more than nothing; write it in minor units`,
		`h.yaml:4: policy[2].bulk.up_to: is missing; write it in minor units`,
	}},
	{"bad hours", "policy:\n  - { name: x, when: { hours: \"mon-fry 08:00-18:00 Europe/Berlin\" }, then: ask }\n  - { name: y, when: { hours: \"08:00-18:00\" }, then: ask }\n  - { name: z, when: { hours: \"08:00-18:00 Mars/Base\" }, then: ask }\n", []string{
		`h.yaml:2: policy[0].when.hours: "mon-fry" is no day or range of days; write it like "mon-fri 08:00-18:00 Europe/Berlin"`,
		`h.yaml:3: policy[1].when.hours: "08:00-18:00" is not days, times and zone; write it like "mon-fri 08:00-18:00 Europe/Berlin"`,
		`h.yaml:4: policy[2].when.hours: "Mars/Base" is no time zone; use a name such as Europe/Berlin or UTC`,
	}},
	{"an amount without a currency", "policy:\n  - name: x\n    when:\n      amount_over: 5\n    then: ask\n", []string{
		`h.yaml:4: policy[0].when.amount_over: needs currency beside it; an amount without one says nothing`,
	}},
	{"bad spent_over", "policy:\n  - name: x\n    when:\n      spent_over:\n        currency: EUR\n        per: month\n    then: ask\n", []string{
		`h.yaml:4: policy[0].when.spent_over.amount: is missing; write it in minor units`,
		`h.yaml:4: policy[0].when.spent_over: window: 0s is no time; write a duration such as 24h`,
		`h.yaml:6: policy[0].when.spent_over.per: "month" is not known; use agent, recipient or tenant`,
	}},
	{"an empty list in a row", "policy:\n  - { name: x, when: { agent: [] }, then: ask }\n", []string{
		`h.yaml:2: policy[0].when.agent: an empty list fits nothing; leave it out or name a value`,
	}},
	{"bad currencies", "currencies:\n  EUR: 2\n  usdc: 6\n  USDC: 99\n", []string{
		`h.yaml:2: currencies.EUR: ISO 4217 fixes its digits; leave it out`,
		`h.yaml:3: currencies.usdc: write 3 to 12 capital letters and digits`,
		`h.yaml:4: currencies.USDC: write 0 to 18 digits`,
	}},
	{"bad schedules", "jobs:\n  sweep: \"@every 10 minutes\"\n  lookup: \"61 * * * *\"\n  seal: \"@every 10ms\"\n  recheck: \"0 0 30 2 *\"\n  refunds: TZ=Europe/Berlin\n", []string{
		`h.yaml:2: jobs.sweep: "@every 10 minutes" is no schedule; write one such as "@every 30s" or "0 7 * * *", not more often than once a second`,
		`h.yaml:3: jobs.lookup: "61 * * * *" is no schedule; write one such as "@every 30s" or "0 7 * * *"`,
		`h.yaml:4: jobs.seal: "@every 10ms" is no schedule; write one such as "@every 30s" or "0 7 * * *", not more often than once a second`,
		`h.yaml:5: jobs.recheck: "0 0 30 2 *" is a day that never comes`,
		`h.yaml:6: jobs.refunds: "TZ=Europe/Berlin" is no schedule; write one such as "@every 30s" or "0 7 * * *"`,
	}},
	{"bad timing", "timing: { lease: 0s, unknown_for: never, take_back: soon }\n", []string{
		`h.yaml:1: timing.take_back: "soon" is not a duration such as 10s`,
		`h.yaml:1: timing.lease: is shorter than 1s`,
		`h.yaml:1: timing.unknown_for: cannot be never`,
	}},
	{"bad runs and limits", "runs: { max_attempts: 0, max_elapsed: 1ms }\nlimits: { requests_per_second: -1 }\n", []string{
		`h.yaml:1: runs.max_attempts: 0 is less than 1`,
		`h.yaml:1: runs.max_elapsed: is shorter than 1s`,
		`h.yaml:2: limits.requests_per_second: -1 is less than 1`,
	}},
	{"names of tenants", "tenants:\n  Acme: {}\n  default: {}\n", []string{
		`h.yaml:2: tenants.Acme: name it with 1 to 63 of a-z 0-9 -`,
		`h.yaml:3: tenants.default: stands at the top of the file, not under tenants`,
	}},
	{"mistakes of another tenant", "tenants:\n  acme:\n    rails:\n      a: { adapter: sandbox, quiet: never }\n    action_types:\n      pay: { rail: b, schema: { type: object } }\n    policy:\n      - { name: x, when: { rail: z }, then: ask }\n    runs: { max_attempts: 0 }\n", []string{
		`h.yaml:4: tenants.acme.rails.a.quiet: cannot be never`,
		`h.yaml:6: tenants.acme.action_types.pay.rail: "b" is no rail here; there are a`,
		`h.yaml:8: tenants.acme.policy[0].when.rail: "z" is no rail here; there are a`,
		`h.yaml:9: tenants.acme.runs.max_attempts: 0 is less than 1`,
	}},
	{"another tenant's rail is not seen", goodRail + "tenants:\n  acme:\n    action_types:\n      pay: { rail: a, schema: { type: object } }\n", []string{
		`h.yaml:5: tenants.acme.action_types.pay.rail: "a" is no rail here; there is none`,
	}},
	{"mistakes of reading and of meaning together", "rails:\n  a:\n    adapter: sandbox\n    timeout: \"10 secnds\"\naction_types:\n  pay: { rail: b, schema: { type: object } }\njobs: { sweep: never }\n", []string{
		`h.yaml:4: rails.a.timeout: "10 secnds" is not a duration such as 10s`,
		`h.yaml:6: action_types.pay.rail: "b" is no rail here; there are a`,
		`h.yaml:7: jobs.sweep: "never" is no schedule; write one such as "@every 30s" or "0 7 * * *"`,
	}},
	{"channels that tell nobody", "notify:\n  link: pay.example.com\n  zone: Local\n  quiet: { from: \"22:00\", to: \"22:00\" }\n  daily: nine\n  about: [approvals]\n  channels:\n    - { kind: pager }\n    - { kind: slack, url: \"http://hooks.example.com/T/B\" }\n    - { kind: slack, url: \"https://hooks.example.com/T/B\", secret: x }\n    - { kind: ntfy, url: \"https://ntfy.sh\", topic: \"a b\", name: n }\n    - { kind: smtp, url: \"smtps://mail.example.com\", from: ops@example.com, to: [nobody] }\n    - { kind: webhook, url: \"https://h.example.com/x\", secret: whsec_c2hvcnQ= }\n", []string{
		`h.yaml:2: notify.link: is missing or no address; write where people open holdfast, such as https://pay.example.com`,
		`h.yaml:3: notify.zone: "Local" is no time zone; use a name such as Europe/Berlin or UTC`,
		`h.yaml:4: notify.quiet: needs two different times, such as { from: "22:00", to: "07:00" }`,
		`h.yaml:5: notify.daily: is no time; write one such as "09:00"`,
		`h.yaml:6: notify.about: "approvals" is not one of approval, hold, owed, exception, rail`,
		`h.yaml:8: notify.channels[0].kind: "pager" is not one of slack, ntfy, smtp, webhook`,
		`h.yaml:9: notify.channels[1].url: would send in the clear; write https://`,
		`h.yaml:10: notify.channels[2].name: "slack" is the name of another channel`,
		`h.yaml:11: notify.channels[3].topic: is missing or no topic: 1 to 64 of A-Z a-z 0-9 _ -`,
		`h.yaml:12: notify.channels[4].to: needs 1 to 100 e-mail addresses, each of them once`,
		`h.yaml:13: notify.channels[5].secret: is shorter than 24 bytes, which can be guessed`,
	}},
	{"a channel's secrets stay out of what is said about it", "notify:\n  link: https://pay.example.com\n  channels:\n    - { kind: slack, url: \"https://user:${CARD_TOKEN}@hooks.example.com/\", token: t }\n", []string{
		`h.yaml:4: notify.channels[0].token: is for kind ntfy`,
		`h.yaml:4: notify.channels[0].url: holds a name or password; put credentials into headers`,
	}},
}

func TestEveryMistakeIsNamedWithItsLineAndKey(t *testing.T) {
	dir := configDir(t)
	for _, tt := range brokenConfigs {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig([]byte(tt.text), dir, "h.yaml", cardEnv, testNow, nil)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if got, want := err.Error(), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The lines must be right however the file is written.
func TestLinesAreCountedAsEditorsCountThem(t *testing.T) {
	text := "# one\n\nrails: # three\n  a: {\n    adapter: sandbox,\n    x: 1 }\n\n  # eight\n  b:\n    adapter: >-\n      sandbox\n    account: |-\n      a\n\n    y: 1\npolicy:\n- name: \"two\n    lines\"\n  when: {}\n  then: ask\n  z: 1\n-\n  name: 'x'\n  then: ask\n  when: {}\n  w: 1\n"
	for name, text := range map[string]string{"LF": text, "a byte order mark": "\uFEFF" + text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n")} {
		_, err := ParseConfig([]byte(text), t.TempDir(), "h.yaml", cardEnv, testNow, nil)
		var got []string
		for line := range strings.SplitSeq(err.Error(), "\n") {
			place, _, _ := strings.Cut(line, ": unknown key")
			got = append(got, place)
		}
		want := "h.yaml:6: rails.a.x; h.yaml:15: rails.b.y; h.yaml:21: policy[0].z; h.yaml:26: policy[1].w"
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "; "), want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, tt := range brokenConfigs {
		f.Add([]byte(tt.text))
	}
	text, err := defaults.ReadFile("defaults/holdfast.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(contractExample))
	f.Add(bytes.Repeat([]byte("["), 500))
	dir := configDir(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text, dir, "h.yaml", cardEnv, testNow, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("neither a configuration nor an error, or both: %v, %v", c, err)
		}
		if err != nil && strings.Contains(err.Error(), "tok-5f1c9e") {
			t.Fatalf("a secret shows: %v", err)
		}
	})
}
