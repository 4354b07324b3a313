//! Failpoints: places where a test interrupts a process. They exist in debug builds only.

use crate::storage::Error;

/// Interrupts the process here if a test has armed this failpoint: `CLOAKROOM_FAILPOINT=name` or `name=3` for the third
/// time aborts it, [`arm`] makes this return an error.
#[cfg(debug_assertions)]
pub fn failpoint(name: &'static str) -> Result<(), Error> {
    match armed::hit(name) {
        armed::Effect::None => Ok(()),
        armed::Effect::Error => Err(Error::NotSent("failpoint")),
        armed::Effect::Abort => std::process::abort(),
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn failpoint(_name: &'static str) -> Result<(), Error> {
    Ok(())
}

#[cfg(debug_assertions)]
pub use self::armed::arm;

#[cfg(debug_assertions)]
mod armed {
    use std::sync::{LazyLock, Mutex, PoisonError};

    const VARIABLE: &str = "CLOAKROOM_FAILPOINT";

    struct Armed {
        name: String,
        /// Hits until it takes effect.
        remaining: u32,
        aborts: bool,
    }

    pub(super) enum Effect {
        None,
        Error,
        Abort,
    }

    static ARMED: LazyLock<Mutex<Option<Armed>>> = LazyLock::new(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "no setting: tests interrupt debug builds with it"
        )]
        let text = std::env::var(VARIABLE).ok();
        Mutex::new(text.map(|text| {
            let (name, hits) = text.split_once('=').unwrap_or((&text, "1"));
            Armed {
                name: name.to_owned(),
                remaining: hits.parse().unwrap_or(1),
                aborts: true,
            }
        }))
    });

    /// Makes a failpoint of this process return an error at its hit number `hits`, once.
    pub fn arm(name: &str, hits: u32) {
        let mut armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        *armed = Some(Armed {
            name: name.to_owned(),
            remaining: hits,
            aborts: false,
        });
    }

    pub(super) fn hit(name: &str) -> Effect {
        let mut guard = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(armed) = guard.as_mut().filter(|armed| armed.name == name) else {
            return Effect::None;
        };
        armed.remaining = armed.remaining.saturating_sub(1);
        match (armed.remaining, armed.aborts) {
            (1.., _) => Effect::None,
            (0, true) => Effect::Abort,
            (0, false) => {
                *guard = None;
                Effect::Error
            }
        }
    }
}
