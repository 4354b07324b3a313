//! HTTP handlers of the audit log.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Filter, LogEntry, LogPage, PageRequest, PageStart, list};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    AccessErrors, Answer, ApiError, FieldError, NumberedPage, Query, QueryErrors, ReadErrors,
    format_utc,
};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

const SIZE_MAX: usize = 5_000;
const START_CHARS_MAX: usize = 500;
const ENTITY_ID_CHARS_MAX: usize = 400;

/// The routes of the audit log.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_logs))
        .routes(routes!(list_entity_types))
}

/// List audit log entries.
///
/// Requires `log:read`. Newest first, within the tenant's log retention. Every change, every read
/// of a token, and every read of a single managed resource has an entry; rejected requests have
/// none. Use `page` for page numbers, or `start` for cursors: each page returns the start of the
/// next one in `next`.
#[utoipa::path(
    get, path = "/logs", tag = "Logs",
    params(
        ("entity_type" = Option<String>, Query, description = "Type of entity: one of \
         `GET /logs/entity-types`. `token` means all tokens, `card` and `bank` those types.",
         max_length = 50),
        ("entity_id" = Option<String>, Query, description = "Id of an entity.", max_length = 400),
        ("start_date" = Option<String>, Query, description = "Inclusive start date or time."),
        ("end_date" = Option<String>, Query, description = "Exclusive end date or time."),
        ("start" = Option<String>, Query, description = "The `next` of the previous page.", max_length = 500),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u16>, Query, description = "Entries per page; 20 by default.", minimum = 0, maximum = 5000),
    ),
    responses(ReadErrors, QueryErrors, (status = 200, description = "A page of entries.", body = LogPageBody<'_>)),
)]
async fn list_logs(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::LogRead)?;
    let (filter, page) = parse_query(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = list(&vault.audit, vault.keys.control(), &caller, &filter, &page).await?;
    Answer::ok(&LogPageBody::new(&caller, &listed, &page))
}

/// List the entity types of the audit log.
///
/// Requires `log:read`.
#[utoipa::path(
    get, path = "/logs/entity-types", tag = "Logs",
    responses(AccessErrors, (status = 200, description = "All values of `entity_type`.", body = Vec<EntityTypeBody>)),
)]
async fn list_entity_types(Extension(caller): Extension<Arc<Caller>>) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::LogRead)?;
    let types: Vec<EntityTypeBody> = EntityKind::ALL
        .iter()
        .map(|kind| EntityTypeBody {
            display_name: kind.display_name(),
            value: kind.value(),
        })
        .collect();
    Answer::ok(&types)
}

const PARAMETERS: [&str; 7] = [
    "entity_type",
    "entity_id",
    "start_date",
    "end_date",
    "start",
    "page",
    "size",
];

fn parse_query(query: Option<&str>) -> Result<(Filter, PageRequest), Vec<FieldError>> {
    let mut given = Query::decode(query, &PARAMETERS);
    let kinds = given.once("entity_type").and_then(|value| {
        let kinds = EntityKind::from_filter(&value.to_lowercase());
        let rule = "must be one of GET /logs/entity-types";
        given.check("entity_type", kinds.ok_or_else(|| rule.to_owned()))
    });
    let entity_id = given.once("entity_id");
    if entity_id
        .as_ref()
        .is_some_and(|id| id.chars().count() > ENTITY_ID_CHARS_MAX || id.contains('\0'))
    {
        let rule = format!("must be at most {ENTITY_ID_CHARS_MAX} characters, none of them NUL");
        given.reject("entity_id", rule);
    }
    let mut date = |name: &str| {
        let text = given.once(name)?;
        given.check(name, parse_date(&text).ok_or_else(|| DATE_RULE.to_owned()))
    };
    let filter = Filter {
        kinds,
        entity_id,
        start: date("start_date"),
        end: date("end_date"),
    };
    let start = given.once("start").filter(|start| !start.is_empty());
    if start
        .as_ref()
        .is_some_and(|text| text.chars().count() > START_CHARS_MAX)
    {
        given.reject(
            "start",
            format!("must be at most {START_CHARS_MAX} characters"),
        );
    }
    let number = given.number("page");
    let page = NumberedPage::new(number, given.number("size"), SIZE_MAX);
    // Official clients send a page number of 1 together with any other parameter.
    let from = |page: NumberedPage| match (start, number) {
        (_, Some(_)) if page.page > 1 => PageStart::Page(page.page),
        (Some(start), _) => PageStart::Cursor(start),
        (None, _) => PageStart::Newest,
    };
    let page = page.map(|page| PageRequest {
        size: page.size,
        from: from(page),
    });
    given.finish(filter, page)
}

const DATE_RULE: &str = "must be a date such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z";

/// A date means midnight in UTC.
fn parse_date(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    let midnight = match text.parse::<Date>() {
        Ok(date) => date.at(0, 0, 0, 0),
        Err(_) => text.parse().ok()?,
    };
    let at = midnight.to_zoned(TimeZone::UTC).ok()?;
    Some(at.timestamp())
}

/// A page of entries.
#[derive(Serialize, ToSchema)]
struct LogPageBody<'a> {
    pagination: LogPaginationBody<'a>,
    data: Vec<LogBody<'a>>,
}

#[derive(Serialize, ToSchema)]
struct LogPaginationBody<'a> {
    /// Entries on this page.
    page_size: usize,
    /// The requested page number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    page_number: Option<u32>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<&'a str>,
}

/// One audit log entry.
#[derive(Serialize, ToSchema)]
struct LogBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    /// The application that acted; absent for the vault itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_id: Option<Uuid>,
    /// `application`, `user` or `system`.
    actor_type: &'static str,
    /// The client's IP address, or for a command the operator and host, such as `ada@vault1`;
    /// absent for what the vault does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    origin: Option<&'a str>,
    entity_type: &'static str,
    entity_id: &'a str,
    /// `create`, `read`, `update`, `delete`, `use`, `search`, `invoke`, `authorize`, `expire`,
    /// `convert` or `refuse`.
    operation: &'static str,
    /// How sensitive data was returned: `redacted`, `masked` or `revealed`; `done` if none was
    /// requested.
    outcome: &'static str,
    message: &'a str,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
struct EntityTypeBody {
    /// Display name.
    display_name: &'static str,
    /// Value of the parameter `entity_type`.
    value: &'static str,
}

impl<'a> LogPageBody<'a> {
    fn new(caller: &Caller, listed: &'a LogPage, page: &PageRequest) -> Self {
        Self {
            pagination: LogPaginationBody {
                page_size: listed.entries.len(),
                page_number: match page.from {
                    PageStart::Page(number) => Some(number),
                    PageStart::Newest => Some(1),
                    PageStart::Cursor(_) => None,
                },
                next: listed.next.as_deref(),
            },
            data: listed
                .entries
                .iter()
                .map(|record| LogBody::new(caller, record))
                .collect(),
        }
    }
}

impl<'a> LogBody<'a> {
    fn new(caller: &Caller, record: &'a LogEntry) -> Self {
        Self {
            id: record.id,
            tenant_id: caller.tenant.uuid,
            actor_id: record.actor_id,
            actor_type: record.actor_kind.name(),
            origin: record.origin.as_deref(),
            entity_type: record.entity.wire_name(),
            entity_id: &record.entity_id,
            operation: record.operation.verb(),
            outcome: record.outcome.name(),
            message: &record.message,
            created_at: format_utc(record.created_at),
        }
    }
}
