//! JSON bodies of a tenant, its quotas and its security contact.

use cloakroom_core::access::{Quotas, TenantSettings};
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{ApiError, format_utc};
use cloakroom_platform::ids::TenantId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Deletion, Tenant, find_deletion};
use crate::members;

/// Data of a tenant's body that is stored outside the tenant's row.
pub(super) struct RelatedData {
    owner: Option<Uuid>,
    deletion: Option<Deletion>,
}

impl RelatedData {
    pub(super) async fn find(vault: &Vault, tenant: TenantId) -> Result<Self, ApiError> {
        let owner = members::owner_of(vault, tenant).await?;
        Ok(Self {
            owner: owner.map(|owner| owner.user.id),
            deletion: find_deletion(vault, tenant).await?,
        })
    }
}

/// Changes to the tenant.
#[derive(Deserialize, ToSchema)]
pub(super) struct TenantChangeBody {
    #[schema(required, min_length = 1, max_length = 200)]
    pub(super) name: Option<String>,
    /// Settings, all as strings: `fingerprint_tokens`, `disable_ephemeral_proxy`, `deduplicate_tokens`,
    /// `card_numbers_in_metadata` and `mask_proxy_configuration` are `true` or `false`,
    /// `token_deduplication_behavior` is `read_existing` or `update_existing`, and the others are lists of hosts,
    /// separated by commas: `threeds_callback_hosts` of callback URLs, `egress_hosts` that proxies and webhooks may
    /// send requests to, `elements_sites` of sites that may embed web elements, and `elements_hosts` of servers besides
    /// the vault that web elements may send values to.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    pub(super) settings: Option<Map<String, Value>>,
}

/// A tenant. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub(super) struct TenantBody<'a> {
    id: Uuid,
    /// The user id of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    owner_id: Option<Uuid>,
    name: &'a str,
    /// `test` or `production`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[schema(value_type = BTreeMap<String, String>)]
    settings: &'a TenantSettings,
    /// The application that created it; absent if it was created with the CLI.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_at: Option<String>,
    /// Present while a deletion is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deletion: Option<DeletionBody>,
}

/// A pending deletion: requested, or confirmed but not yet executed.
#[derive(Serialize, ToSchema)]
pub(super) struct DeletionBody {
    /// The application whose key requested it.
    requested_by: Uuid,
    requested_at: String,
    /// The application whose key confirmed it; absent until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    confirmed_by: Option<Uuid>,
    /// When the tenant is deleted; absent until the deletion is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delete_at: Option<String>,
}

impl From<&Deletion> for DeletionBody {
    fn from(deletion: &Deletion) -> Self {
        Self {
            requested_by: deletion.requested_by,
            requested_at: format_utc(deletion.requested_at),
            confirmed_by: deletion.confirmed_by,
            delete_at: deletion.due_at.map(format_utc),
        }
    }
}

impl<'a> TenantBody<'a> {
    pub(super) fn new(tenant: &'a Tenant, related: &RelatedData) -> Self {
        Self {
            id: tenant.id.uuid,
            owner_id: related.owner,
            name: &tenant.name,
            kind: tenant.kind.name(),
            settings: &tenant.settings,
            created_by: tenant.created_by,
            created_at: format_utc(tenant.created_at),
            modified_by: tenant.modified_by,
            modified_at: tenant.modified_at.map(format_utc),
            deletion: related.deletion.as_ref().map(DeletionBody::from),
        }
    }
}

/// Changes to the quotas. Durations are in seconds.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents attributes that are read by name")]
pub(super) struct QuotaChangeBody {
    /// `default`, `unlimited`, or a factor from `1x` to `100x`.
    rate_limit: Option<String>,
    #[schema(minimum = 3600, maximum = 7948800)]
    log_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 1000)]
    tokenize_limit: Option<usize>,
    #[schema(minimum = 1, maximum = 1000)]
    detokenize_limit: Option<usize>,
    #[schema(minimum = 1, maximum = 172800)]
    cvc_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 172800)]
    token_intent_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 1000)]
    card_velocity_limit: Option<usize>,
    threeds: Option<bool>,
}

/// The quotas of a tenant. Durations are in seconds.
#[derive(Serialize, ToSchema)]
pub(super) struct QuotasBody {
    /// How the rate limits apply: `default`, `unlimited`, or a factor such as `5x`.
    rate_limit: String,
    /// How long log entries are available.
    log_retention: u64,
    /// Tokens that one tokenize request may create.
    tokenize_limit: usize,
    /// Expressions that one detokenize request may contain.
    detokenize_limit: usize,
    /// How long the security code of a card can be read.
    cvc_retention: u64,
    /// How long a token intent can be used.
    token_intent_retention: u64,
    /// Distinct card numbers with the same first six and last four digits that one application may send within an hour.
    card_velocity_limit: usize,
    /// Whether 3-D Secure is enabled.
    threeds: bool,
}

impl QuotasBody {
    pub(super) fn new(quotas: &Quotas) -> Self {
        Self {
            rate_limit: quotas.rate_limit.to_string(),
            log_retention: quotas.log_retention.as_secs(),
            tokenize_limit: quotas.tokenize_limit,
            detokenize_limit: quotas.detokenize_limit,
            cvc_retention: quotas.cvc_retention.as_secs(),
            token_intent_retention: quotas.token_intent_retention.as_secs(),
            card_velocity_limit: quotas.card_velocity_limit,
            threeds: quotas.threeds,
        }
    }
}

/// The contact for security incidents.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewSecurityContactBody {
    #[schema(required, max_length = 330)]
    pub(super) email: Option<String>,
}

/// The contact for security incidents.
#[derive(Serialize, ToSchema)]
pub(super) struct SecurityContactBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) email: Option<&'a str>,
}
