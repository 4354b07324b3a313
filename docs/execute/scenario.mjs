// The order in which the samples of the API reference run, and the values that they need.
//
// A step runs every sample of the operation `id`, or one `example`. `key` is the kind of the API key or a saved
// variable, `set` has the variables of the sample, `save` stores members of the response, `match` a part of its text, and
// `replace` replaces an id of the example by a stored one. A response that `isTimed` depends on what happened meanwhile
// and is not compared. `command` prepares something that a reader has already.

const post = (path, key, body) =>
  `curl -s "$BASE_URL${path}" -H "BT-API-KEY: $${key}" -H 'Content-Type: application/json' -d '${body}'`;

const token = "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d";
const other = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
const version = "2.17.0";
/** A PNG of 8 by 8 pixels. */
const logo = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGOQjV+BFTEMLQkAY6xJAc7mcxYAAAAASUVORK5CYII=";

const tokens = [
  { command: post("/tokens", "PRIVATE_KEY", `{"id":"${token}","type":"card","data":{"number":"4242424242424242","expiration_month":12,"expiration_year":2030}}`) },
  { id: "create_token", example: "card", key: "private", save: { CARD: "id" } },
  { id: "create_token", example: "bank", key: "private", save: { BANK: "id" } },
  { id: "create_token", example: "token", key: "private", save: { CUSTOMER: "id" } },
  { id: "create_token_intent", key: "private", save: { INTENT: "id" } },
  { id: "find_token_intent", key: "private", set: { ID: "$INTENT" } },
  { id: "create_token", example: "intent", key: "private", replace: { [other]: "INTENT" } },
  { command: post("/token-intents", "PRIVATE_KEY", '{"type":"token","data":"1"}'), save: { INTENT: "id" } },
  { id: "delete_token_intent", key: "private", set: { ID: "$INTENT" } },
  { id: "find_token", key: "private", set: { ID: "$CARD" } },
  { id: "update_token", key: "private", set: { ID: "$CARD" } },
  { id: "list_tokens", key: "private" },
  { id: "search_tokens", key: "private" },
  { id: "list_tokens_old", key: "private" },
  { id: "search_tokens_old", key: "private" },
  { id: "tokenize", key: "private" },
  { id: "detokenize", key: "private" },
  { id: "verify_account", key: "private", replace: { [other]: "BANK" } },
  { id: "find_card_details", key: "private", set: { BIN: "424242" } },
  { id: "delete_token", key: "private", set: { ID: "$CARD" } },
];

const applications = [
  { id: "list_permissions", key: "management" },
  { id: "list_templates", key: "management", save: { TEMPLATE: "0.id" } },
  { id: "find_template", key: "management", set: { ID: "$TEMPLATE" } },
  { id: "create_application", example: "private", key: "management", save: { APPLICATION: "id" } },
  { id: "create_application", example: "public", key: "management" },
  { id: "create_application", example: "management", key: "management" },
  { id: "list_applications", key: "management" },
  { id: "find_application", key: "management", set: { ID: "$APPLICATION" } },
  { id: "find_own_application", key: "private" },
  { id: "update_application", key: "management", set: { ID: "$APPLICATION" } },
  { id: "create_application_key", key: "management", set: { ID: "$APPLICATION" }, save: { APPLICATION_KEY: "id" } },
  { id: "list_application_keys", key: "management", set: { ID: "$APPLICATION" } },
  { id: "find_application_key", key: "management", set: { ID: "$APPLICATION", KEY_ID: "$APPLICATION_KEY" } },
  { id: "delete_application_key", key: "management", set: { ID: "$APPLICATION", KEY_ID: "$APPLICATION_KEY" } },
  { id: "regenerate_key", key: "management", set: { ID: "$APPLICATION" } },
  { id: "delete_application", key: "management", set: { ID: "$APPLICATION" } },
  { id: "create_session", key: "public", save: { NONCE: "nonce" } },
  { id: "authorize_session", key: "private", replace: { "5dr6jz4QN8OxzWYKW9J1dQ": "NONCE" } },
  { id: "create_key", key: "management", save: { ENCRYPTION_KEY: "id" } },
  { id: "list_keys", key: "management" },
  { id: "find_key", key: "management", set: { ID: "$ENCRYPTION_KEY" } },
  { id: "delete_key", key: "management", set: { ID: "$ENCRYPTION_KEY" } },
  { id: "list_logs", key: "management" },
  { id: "list_entity_types", key: "management" },
  { id: "list_formulas", key: "private" },
  { id: "list_formulas_by_post", key: "private" },
  { id: "find_formula", key: "private", set: { ID: "stripe-card" } },
  { id: "list_formulas_alias", key: "private" },
  { id: "list_formulas_by_post_alias", key: "private" },
  { id: "find_formula_alias", key: "private", set: { ID: "stripe-card" } },
];

const tenant = [
  { id: "find_tenant", key: "management" },
  { id: "update_tenant", key: "management" },
  { id: "find_quotas", key: "management" },
  { id: "update_quotas", key: "management" },
  { id: "report_usage", key: "management" },
  { id: "update_security_contact", key: "management" },
  { id: "find_security_contact", key: "management" },
  { id: "set_branding", key: "management" },
  { id: "find_branding", key: "management" },
  { id: "delete_branding", key: "management" },
  { id: "list_roles", key: "management" },
  { id: "list_members", key: "management", save: { MEMBER: "data.0.id" } },
  { id: "update_member", key: "management", set: { ID: "$MEMBER" } },
  { id: "find_owner", key: "management" },
  { command: 'cloakroom member add --tenant $TENANT --email lead@example.com --role admin >/dev/null && curl -s "$BASE_URL/tenants/self/members" -H "BT-API-KEY: $MANAGEMENT_KEY"', save: { ADMIN: "data.0.id" } },
  { id: "transfer_ownership", key: "management", replace: { [other]: "ADMIN" } },
  { id: "delete_member", key: "management", set: { ID: "$MEMBER" } },
  { id: "create_invitation", key: "management", save: { INVITATION: "id" } },
  { id: "list_invitations", key: "management" },
  { id: "find_invitation", key: "management", set: { ID: "$INVITATION" } },
  { id: "resend_invitation", key: "management", set: { ID: "$INVITATION" } },
  { id: "delete_invitation", key: "management", set: { ID: "$INVITATION" } },
  { id: "create_connection", key: "management" },
  { id: "delete_connection", key: "management" },
];

const outgoing = [
  { id: "create_proxy", key: "management", save: { PROXY: "id" } },
  { id: "list_proxies", key: "management" },
  { id: "find_proxy", key: "management", set: { ID: "$PROXY" } },
  { id: "replace_proxy", key: "management", set: { ID: "$PROXY" } },
  { id: "patch_proxy", key: "management", set: { ID: "$PROXY" } },
  { id: "rotate_proxy_key", key: "management", set: { ID: "$PROXY" } },
  { id: "delete_proxy", key: "management", set: { ID: "$PROXY" } },
  { id: "list_event_types", key: "management" },
  { id: "create_webhook", key: "management", save: { WEBHOOK: "id" } },
  { id: "list_webhooks", key: "management" },
  { id: "find_webhook", key: "management", set: { ID: "$WEBHOOK" } },
  { id: "update_webhook", key: "management", set: { ID: "$WEBHOOK" } },
  { command: post("/tokens", "PRIVATE_KEY", '{"type":"token","data":"1"}') },
  { id: "list_deliveries", key: "management", set: { ID: "$WEBHOOK" }, isTimed: true },
  { id: "replay_events", key: "management", set: { ID: "$WEBHOOK" } },
  { id: "delete_webhook", key: "management", set: { ID: "$WEBHOOK" } },
];

const cardholders = [
  { command: post("/tokens", "PRIVATE_KEY", '{"id":"card-3001","type":"card","data":{"number":"4200000000000002","expiration_month":12,"expiration_year":2030}}'), save: { THREEDS_CARD: "id" } },
  { id: "create_threeds_session", key: "private", replace: { [token]: "THREEDS_CARD" }, save: { SESSION: "id" } },
  { id: "find_threeds_session", key: "private", set: { ID: "$SESSION" } },
  { command: post("/3ds/sessions", "PUBLIC_KEY", '{"type":"customer","device":"app","token_id":"card-3001"}'), save: { APP_SESSION: "id" } },
  { id: "describe_threeds_session", key: "public", set: { ID: "$APP_SESSION" } },
  { id: "authenticate_threeds_session", key: "private", set: { ID: "$SESSION" } },
  { id: "find_threeds_result", key: "private", set: { ID: "$SESSION" } },
  { id: "create_checkout_session", key: "private", save: { CHECKOUT: "id" }, match: { CHECKOUT_KEY: /\/checkout\/([\w-]+)"/ } },
  { command: `curl -s -X PUT "$BASE_URL/tenants/self/branding" -H "BT-API-KEY: $MANAGEMENT_KEY" -H 'Content-Type: application/json' -d '{"name":"Shop","logo":"${logo}"}'` },
  { id: "show_checkout", set: { KEY: "$CHECKOUT_KEY" }, match: { ASSET: /\/pages\/assets\/([\w.-]+)/, BRANDING: /\/pages\/branding\/([\w-]+)\// } },
  { id: "show_asset", set: { NAME: "$ASSET" } },
  { id: "show_colors", set: { ID: "$BRANDING" } },
  { id: "show_logo", set: { ID: "$BRANDING" } },
  { id: "submit_card", set: { KEY: "$CHECKOUT_KEY" } },
  { id: "find_checkout_session", key: "private", set: { ID: "$CHECKOUT" } },
];

const open = [
  { id: "show_start_page" },
  { id: "show_error_catalog", isUnrecorded: true },
  { id: "ping" },
  { id: "describe", isUnrecorded: true },
  { id: "show_webhook_key" },
  { id: "hashes", set: { VERSION: version } },
  { id: "show_coordinator", set: { VERSION: version, API_KEY: "$PUBLIC_KEY" } },
  { id: "show_field", set: { VERSION: version, API_KEY: "$PUBLIC_KEY" } },
  { command: post("/keys", "MANAGEMENT_KEY", "{}"), save: { ENCRYPTION_KEY: "id" } },
  { id: "find_public_key", set: { VERSION: version, API_KEY: "$PUBLIC_KEY", ID: "$ENCRYPTION_KEY" } },
  { id: "client_script", set: { VERSION: version } },
  { id: "coordinator_script", set: { VERSION: version } },
  { id: "field_script", set: { VERSION: version } },
  { id: "show_method", set: {} },
  { id: "show_challenge", set: {} },
  { id: "show_method_notification", set: { ID: "$SESSION" } },
  { id: "show_challenge_notification", set: { ID: "$SESSION" } },
];

const removed = [
  "list_reactor_formulas", "create_reactor_formula", "find_reactor_formula", "replace_reactor_formula", "delete_reactor_formula",
  "list_reactors", "create_reactor", "find_reactor", "replace_reactor", "delete_reactor", "change_reactor", "react", "react_later",
  "find_reaction",
].map((id) => ({ id, key: "management", set: { ID: other, REQUEST_ID: other } }));

const proxied = ["get", "put", "post", "delete", "patch"].flatMap((method) =>
  [`invoke_proxy_${method}`, `invoke_proxy_path_${method}`].map((id) => ({
    id,
    key: "private",
    set: { URL: "$CHECKOUT_URL", SUFFIX: "payments" },
    isProxied: true,
  })),
);

export const steps = [
  ...tokens,
  ...applications,
  ...tenant,
  ...outgoing,
  ...cardholders,
  ...proxied,
  ...open,
  ...removed,
  { id: "delete_tenant", key: "management" },
  { id: "cancel_tenant_deletion", key: "management" },
];

const browser = "needs the nonce of a page in a browser; conformance/browser runs it";

/** Operations whose sample is not executed here, and why. */
export const browserOnly = {
  show_hosted_threeds_page: browser,
  send_hosted_device_info: browser,
  authenticate_hosted_session: browser,
  complete_hosted_session: browser,
  cancel_hosted_session: browser,
  notify_method_completion: browser,
  notify_challenge_completion: browser,
};
