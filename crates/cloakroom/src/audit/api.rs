//! The record over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::entry::EntityKind;
use super::list::{self, Error, Filter, From as PageFrom, Listed, LogPage, Shown};
use super::{Unrecorded, list::list};
use crate::access::Permission;
use crate::api::{Answer, ApiError, Broken, NumberedPage, Problem, Query, format_utc};
use crate::caller::Caller;
use crate::vault::Vault;

const SIZE_MAX: usize = 5_000;
const START_CHARS_MAX: usize = 500;
const ENTITY_ID_CHARS_MAX: usize = 400;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_logs))
        .routes(routes!(list_entity_types))
}

/// List what happened.
///
/// Needs `log:read`. Newest first, as far back as the tenant's log retention shows. Every change, every
/// read of a token, and every read of a single managed thing has a record; refused requests have none.
/// With `page`, pages are counted; with `start`, each page says in `next` where the next one starts.
#[utoipa::path(
    get,
    path = "/logs",
    tag = "Logs",
    params(
        ("entity_type" = Option<String>, Query, description = "What something was done to: one of \
         `GET /logs/entity-types`. `token` means all tokens, `card` and `bank` those types.",
         max_length = 50),
        ("entity_id" = Option<String>, Query, description = "The id of one such thing.",
         max_length = 400),
        ("start_date" = Option<String>, Query, description = "From this date or time on."),
        ("end_date" = Option<String>, Query, description = "Before this date or time."),
        ("start" = Option<String>, Query, description = "The `next` of the page before.",
         max_length = 500),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u16>, Query, description = "Records on a page, 20 without it.",
         minimum = 0, maximum = 5000),
    ),
    responses(
        (status = 200, description = "A page of records.", body = LogPageBody<'_>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_logs(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::LogRead)?;
    let (filter, page) = read(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = list(&vault, &caller, &filter, &page).await?;
    Answer::ok(&LogPageBody::new(&caller, &listed, &page))
}

/// List what records can be about.
///
/// Needs `log:read`.
#[utoipa::path(
    get,
    path = "/logs/entity-types",
    tag = "Logs",
    responses(
        (status = 200, description = "Everything that `entity_type` may be.",
         body = Vec<EntityTypeBody>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
    ),
)]
async fn list_entity_types(Extension(caller): Extension<Arc<Caller>>) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::LogRead)?;
    let types: Vec<EntityTypeBody> = EntityKind::ALL
        .iter()
        .map(|kind| EntityTypeBody {
            display_name: kind.display_name(),
            value: kind.value(),
        })
        .collect();
    Answer::ok(&types)
}

const KNOWN: [&str; 7] = [
    "entity_type",
    "entity_id",
    "start_date",
    "end_date",
    "start",
    "page",
    "size",
];

fn read(query: Option<&str>) -> Result<(Filter, LogPage), Vec<Broken>> {
    let mut given = Query::decode(query, &KNOWN);
    let kinds = given.once("entity_type").and_then(|value| {
        let kinds = EntityKind::meant_by(&value.to_lowercase());
        let rule = "must be one of GET /logs/entity-types";
        given.check("entity_type", kinds.ok_or_else(|| rule.to_owned()))
    });
    let entity_id = given.once("entity_id");
    if entity_id
        .as_ref()
        .is_some_and(|id| id.chars().count() > ENTITY_ID_CHARS_MAX || id.contains('\0'))
    {
        let rule = format!("must be at most {ENTITY_ID_CHARS_MAX} characters, none of them NUL");
        given.refuse("entity_id", rule);
    }
    let mut date = |name: &str| {
        let text = given.once(name)?;
        given.check(name, moment(&text).ok_or_else(|| DATE_RULE.to_owned()))
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
        given.refuse(
            "start",
            format!("must be at most {START_CHARS_MAX} characters"),
        );
    }
    let number = given.number("page");
    let page = NumberedPage::new(number, given.number("size"), SIZE_MAX);
    // Official clients count pages and start with the first, whatever else they send.
    let from = |page: NumberedPage| match (start, number) {
        (_, Some(_)) if page.page > 1 => PageFrom::Page(page.page),
        (Some(start), _) => PageFrom::Cursor(start),
        (None, _) => PageFrom::Newest,
    };
    let page = page.map(|page| LogPage {
        size: page.size,
        from: from(page),
    });
    given.settle(filter, page)
}

const DATE_RULE: &str = "must be a date such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z";

/// A date is its first moment in UTC.
fn moment(text: &str) -> Option<Timestamp> {
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

/// A page of records.
#[derive(Serialize, ToSchema)]
struct LogPageBody<'a> {
    pagination: LogPaginationBody<'a>,
    data: Vec<LogBody<'a>>,
}

#[derive(Serialize, ToSchema)]
struct LogPaginationBody<'a> {
    /// Records on this page.
    page_size: usize,
    /// The page that was asked for by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    page_number: Option<u32>,
    /// Where the next page starts; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<&'a str>,
}

/// One thing that happened.
#[derive(Serialize, ToSchema)]
struct LogBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    /// Who did it: an application; absent when it was the vault itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_id: Option<Uuid>,
    /// `application`, `user` or `system`.
    actor_type: &'static str,
    entity_type: &'static str,
    entity_id: &'a str,
    /// `create`, `read`, `update`, `delete`, `use`, `search`, `invoke`, `authorize`, `expire`,
    /// `convert` or `refuse`.
    operation: &'static str,
    /// What was seen of sensitive data: `redacted`, `masked` or `revealed`; `done` where none was asked
    /// for.
    outcome: &'static str,
    message: &'a str,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
struct EntityTypeBody {
    /// A name for people.
    display_name: &'static str,
    /// What `entity_type` is to be.
    value: &'static str,
}

impl<'a> LogPageBody<'a> {
    fn new(caller: &Caller, listed: &'a Listed, page: &LogPage) -> Self {
        Self {
            pagination: LogPaginationBody {
                page_size: listed.records.len(),
                page_number: match page.from {
                    list::From::Page(number) => Some(number),
                    list::From::Newest => Some(1),
                    list::From::Cursor(_) => None,
                },
                next: listed.next.as_deref(),
            },
            data: listed
                .records
                .iter()
                .map(|record| LogBody::new(caller, record))
                .collect(),
        }
    }
}

impl<'a> LogBody<'a> {
    fn new(caller: &Caller, record: &'a Shown) -> Self {
        Self {
            id: record.id,
            tenant_id: caller.tenant.uuid,
            actor_id: record.actor_id,
            actor_type: record.actor_kind.name(),
            entity_type: record.entity.shown(),
            entity_id: &record.entity_id,
            operation: record.operation.verb(),
            outcome: record.outcome.name(),
            message: &record.message,
            created_at: format_utc(record.created_at),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Storage(error) => error.into(),
        }
    }
}

impl From<Unrecorded> for ApiError {
    fn from(_: Unrecorded) -> Self {
        Self::unavailable(
            "audit_unavailable",
            "What was asked for cannot be recorded at the moment, and so is not answered.",
        )
    }
}
