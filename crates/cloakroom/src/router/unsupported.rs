//! Paths of the hosted service that Cloakroom does not have.

use cloakroom_platform::api::ApiError;

/// The first segment of a path, and why it is not served.
const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "account-updater",
        "Cloakroom has no account updater: it needs a contract with the card networks. Your processor may update cards.",
    ),
    (
        "agentic",
        "Cloakroom has no agentic payments: they need a contract with the card networks.",
    ),
    (
        "apple-pay",
        "Cloakroom does not decrypt Apple Pay tokens: it needs a certificate of Apple. Send them to your processor.",
    ),
    (
        "documents",
        "Cloakroom does not store files. Store the file encrypted, and its key as a token.",
    ),
    (
        "events",
        "Cloakroom has no list of events. Webhooks deliver them, and `GET /logs` lists what happened.",
    ),
    (
        "google-pay",
        "Cloakroom does not decrypt Google Pay tokens: it needs a contract with Google. Send them to your processor.",
    ),
    (
        "network-tokens",
        "Cloakroom does not provision network tokens: it needs a contract with the card networks. Your processor may \
         provision them; they can be stored as tokens of the type `network_token`.",
    ),
];

const PROXY_LOGS: &str = "Proxies have no log of their own: `GET /logs?entity_type=proxy&entity_id=ID` lists their requests.";

const PROXY_HOSTNAME: &str = "Proxies have no host names of their own. Send requests to `/proxy`, with the key of the proxy in \
     `BT-PROXY-KEY`.";

const REACTOR_LOGS: &str =
    "Reactors are not built: the vault does not run code of tenants, so there is no log of it.";

const CONNECTIONS: &str = "Cloakroom manages no connections to processors. `GET /orchestration/connection_formulas` describes their \
     requests; send them through `/proxy`.";

const MERCHANTS: &str = "Cloakroom enrolls no merchants: network tokens and the account updater need a contract with the card \
     networks.";

/// 501 for a path of the hosted service, 404 for every other one.
pub(super) fn reject(path: &str) -> ApiError {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let first = segments.first().copied().unwrap_or_default();
    let unsupported = UNSUPPORTED.iter().find(|(segment, _)| *segment == first);
    match (unsupported, &segments[..]) {
        (Some((_, detail)), _) => ApiError::not_built(*detail),
        (None, ["proxies", _, "logs"]) => ApiError::not_built(PROXY_LOGS),
        (None, ["proxies", _, "hostname"]) => ApiError::not_built(PROXY_HOSTNAME),
        (None, ["reactors", _, "logs"]) => ApiError::not_built(REACTOR_LOGS),
        (None, ["orchestration", "connections", ..]) => ApiError::not_built(CONNECTIONS),
        (None, ["tenants", _, "merchants", ..]) => ApiError::not_built(MERCHANTS),
        (None, _) => ApiError::not_found("There is no such path."),
    }
}
