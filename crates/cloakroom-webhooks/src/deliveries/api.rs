//! HTTP routes of the delivery log and of replays.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State as Context};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, FieldError, JsonBody, PathId, Problem, Query, QueryErrors,
    ReadErrors, WriteErrors, format_utc, page_size,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::list::Position;
use super::replay::Selection;
use super::{Delivery, DeliveryPage, PageRequest, ReplayRange, State};
use crate::deliveries;
use crate::server::WebhookServer;

const SIZE_MAX: usize = 100;
const TIME_RULE: &str = "must be a time such as 2030-01-31T12:00:00Z";

/// The routes of this module.
pub fn routes() -> OpenApiRouter<WebhookServer> {
    OpenApiRouter::new()
        .routes(routes!(list_deliveries))
        .routes(routes!(replay_events))
}

/// List the deliveries of a webhook.
///
/// Requires `webhook:read`. Newest first, without the content of events. Delivered events are listed for seven days,
/// failed ones for thirty.
#[utoipa::path(
    get, path = "/webhooks/{id}/deliveries", tag = "Webhooks",
    params(
        ("id" = Uuid, Path, description = "The webhook's id."),
        ("state" = Option<String>, Query, description = "`pending`, `delivered` or `failed`.", pattern = "^(pending|delivered|failed)$"),
        ("size" = Option<u8>, Query, description = "Deliveries per page; 20 by default.", minimum = 0, maximum = 100),
        ("start" = Option<String>, Query, description = "`next` of the previous page."),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of deliveries.", body = DeliveryPageBody<'_>),
        (status = 404, description = "No such webhook.", body = Problem),
    ),
)]
async fn list_deliveries(
    Context(server): Context<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::WebhookRead)?;
    let page = parse_page(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = deliveries::list(&server, &caller, &id, &page).await?;
    Answer::ok(&DeliveryPageBody::new(&listed))
}

fn parse_page(query: Option<&str>) -> Result<PageRequest, Vec<FieldError>> {
    let mut given = Query::decode(query, &["state", "size", "start"]);
    let state = given.once("state").and_then(|text| {
        let state = State::parse(&text);
        let rule = "must be `pending`, `delivered` or `failed`";
        given.check("state", state.ok_or_else(|| rule.to_owned()))
    });
    let start = given.once("start").filter(|text| !text.is_empty());
    let before = start.and_then(|text| {
        let position = Position::parse(&text);
        let rule = "must be `next` of the previous page";
        given.check("start", position.ok_or_else(|| rule.to_owned()))
    });
    let size = page_size(given.number("size"), SIZE_MAX);
    let (page, size) = given.finish((state, before), size.map_err(|error| vec![error]))?;
    Ok(PageRequest {
        state: page.0,
        before: page.1,
        size,
    })
}

/// Deliver events again.
///
/// Requires `webhook:update`. Send `event_id`, or `from` and `to` for up to 10,000 finished events of a time range, oldest
/// first; `next_from` of the response is `from` of the request for the rest. The events keep their ids. A disabled webhook must be enabled first.
#[utoipa::path(
    post, path = "/webhooks/{id}/replay", tag = "Webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id.")),
    request_body = ReplayBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The events are pending again.", body = ReplayedBody),
        (status = 404, description = "No such webhook, or no such event in its log.", body = Problem),
        (status = 409, description = "The webhook is disabled.", body = Problem),
    ),
)]
async fn replay_events(
    Context(server): Context<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::WebhookUpdate)?;
    let selection = body?.read::<ReplayBody>()?.selection();
    let selection = selection.map_err(ApiError::all_invalid)?;
    let replayed = deliveries::replay(&server, &caller, &id, selection).await?;
    Answer::ok(&ReplayedBody {
        replayed: replayed.count,
        next_from: replayed.next_from.map(|at| at.to_string()),
    })
}

/// Which events to deliver again.
#[derive(Deserialize, ToSchema)]
struct ReplayBody {
    /// One event.
    event_id: Option<String>,
    /// Start of a time range, inclusive.
    #[schema(format = DateTime)]
    from: Option<String>,
    /// End of the time range, exclusive.
    #[schema(format = DateTime)]
    to: Option<String>,
    /// Only `delivered` or only `failed` events of the time range.
    #[schema(pattern = "^(delivered|failed)$")]
    state: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct ReplayedBody {
    /// Events that are pending again.
    replayed: usize,
    /// Value of `from` for the next request, if there may be more events in the time range.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    next_from: Option<String>,
}

impl ReplayBody {
    fn selection(self) -> Result<Selection, Vec<FieldError>> {
        let broken = |path: &str, rule: &str| vec![FieldError::new(path, rule)];
        let time = |name: &str, text: Option<String>| {
            let text = text.ok_or_else(|| broken(name, "is required without `event_id`"))?;
            text.parse::<Timestamp>()
                .map_err(|_| broken(name, TIME_RULE))
        };
        if let Some(id) = self.event_id {
            if self.from.is_some() || self.to.is_some() || self.state.is_some() {
                return Err(broken("event_id", "must be sent alone"));
            }
            let id = id
                .parse()
                .map_err(|_| broken("event_id", "must be a UUID"))?;
            return Ok(Selection::Event(id));
        }
        let state = self.state.map(|name| {
            let state = State::parse(&name).filter(|state| *state != State::Pending);
            state.ok_or_else(|| broken("state", "must be `delivered` or `failed`"))
        });
        Ok(Selection::Range(ReplayRange {
            from: time("from", self.from)?,
            to: time("to", self.to)?,
            state: state.transpose()?,
        }))
    }
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
struct DeliveryPageBody<'a> {
    pagination: DeliveryPaginationBody,
    data: Vec<DeliveryBody<'a>>,
}

#[derive(Serialize, ToSchema)]
struct DeliveryPaginationBody {
    /// Deliveries on this page.
    page_size: usize,
    /// Value of `start` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A delivery: one event for this webhook.
#[derive(Serialize, ToSchema)]
struct DeliveryBody<'a> {
    event_id: Uuid,
    event_type: &'a str,
    /// `pending`, `delivered` or `failed`.
    state: &'static str,
    /// Completed attempts since the event or its last replay.
    attempts: i32,
    #[schema(format = DateTime)]
    created_at: String,
    /// When the next attempt is due, while pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    next_attempt_at: Option<String>,
    /// Status of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_status: Option<i16>,
    /// Why the last attempt failed: `status`, `timeout`, `connect`, `dns`, `tls` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<&'a str>,
    /// When it was delivered or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    finished_at: Option<String>,
}

impl<'a> DeliveryPageBody<'a> {
    fn new(page: &'a DeliveryPage) -> Self {
        Self {
            pagination: DeliveryPaginationBody {
                page_size: page.deliveries.len(),
                next: page.next.map(Position::text),
            },
            data: page.deliveries.iter().map(DeliveryBody::new).collect(),
        }
    }
}

impl<'a> DeliveryBody<'a> {
    fn new(delivery: &'a Delivery) -> Self {
        Self {
            event_id: delivery.event_id,
            event_type: &delivery.event_type,
            state: delivery.state.name(),
            attempts: delivery.attempts,
            created_at: format_utc(delivery.recorded_at),
            next_attempt_at: delivery.next_at.map(format_utc),
            last_status: delivery.last_status,
            last_error: delivery.last_error.as_deref(),
            finished_at: delivery.finished_at.map(format_utc),
        }
    }
}
