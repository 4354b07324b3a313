//! A delivery: one event for one webhook.

use jiff::Timestamp;
use uuid::Uuid;

/// State of a delivery. The numbers are stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending = 1,
    Delivered = 2,
    Failed = 3,
}

impl State {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i16 == number)
    }
}

/// A delivery in the log, without its payload.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub event_id: Uuid,
    pub event_type: String,
    pub state: State,
    /// Completed attempts since the event or its last replay.
    pub attempts: i32,
    pub recorded_at: Timestamp,
    /// When the next attempt is due; only while pending.
    pub next_at: Option<Timestamp>,
    /// Status of the last response.
    pub last_status: Option<i16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    pub finished_at: Option<Timestamp>,
}
