//! Security codes of cards: kept apart from their tokens, under keys that die on time.
//!
//! A key seals for one epoch and is forgotten everywhere when the last code that it sealed has reached
//! its retention. It lives in the memory of nodes and, wrapped by the root key, in Redis; never in
//! PostgreSQL, a file or a log. What a backup holds of a code cannot be opened afterwards.
//!
//! The row is written by the room that keeps the token, in the same statement: it gets a [`SealedCode`]
//! from [`seal`]. Reading goes through [`find`], or [`open()`] for whoever has the row already.

mod fetch;
mod find;
mod life;
mod live_keys;
mod open;
mod publish;
mod seal;
mod store;
mod sweep;
mod tend;

use std::time::Duration;

use tokio::sync::Mutex;

pub use self::find::find;
use self::live_keys::LiveKeys;
pub use self::open::open;
pub use self::seal::{SealedCode, seal};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;
pub use self::tend::tend;

/// Keys that are fetched at the same moment share this many lanes.
const LANES: usize = 64;
/// How long a request waits for Redis in all, queueing and unwrapping included.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// What a node knows of security codes: the keys that live.
pub struct SecurityCodes {
    keys: LiveKeys,
    /// Whoever makes the key of a new epoch; the others wait and then use it.
    making: Mutex<()>,
    /// Whoever fetches a key of another node; those who want the same one wait and then use it.
    fetching: [Mutex<()>; LANES],
}

impl Default for SecurityCodes {
    fn default() -> Self {
        Self {
            keys: LiveKeys::default(),
            making: Mutex::default(),
            fetching: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl SecurityCodes {
    /// How many keys are in the memory of this node.
    pub fn live_keys(&self) -> usize {
        self.keys.count()
    }
}

/// Counts what became of a code; the words are few and constant.
fn count(outcome: &'static str) {
    metrics::counter!("security_codes_total", "outcome" => outcome).increment(1);
}
