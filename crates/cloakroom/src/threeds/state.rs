//! Where a session stands, and the only ways from there to somewhere else.

use std::fmt::Write as _;

use crate::threeds_requests as requests;

/// Lists every state once: variant, number in the table, name, and what it means.
macro_rules! states {
    ($($variant:ident $number:literal $name:literal $meaning:literal;)+) => {
        /// Where a session stands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum State { $($variant = $number),+ }

        impl State {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

states! {
    Created 1 "created" "The card's range is known.";
    MethodDone 2 "method_done" "The issuer has seen the browser.";
    Authenticating 3 "authenticating" "The network is being asked.";
    Challenge 4 "challenge" "The issuer wants to ask the cardholder in the browser or app.";
    Decoupled 5 "decoupled" "The issuer asks the cardholder by itself.";
    Final 6 "final" "The outcome is known and does not change.";
    Dead 7 "dead" "Nobody knows what the network made of it: only a new session helps.";
}

impl State {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|state| *state as i16 == number)
    }
}

/// Something that happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The hosted page is shown.
    PageServed,
    /// An app or the hosted page tells its device.
    DeviceTold,
    /// The issuer's page says that it has seen the browser.
    MethodCompleted,
    /// The merchant asks for authentication.
    Asked,
    /// The network said that nothing came of it, and may be asked again.
    Refused,
    /// The same, when the issuer has seen the browser.
    RefusedAfterMethod,
    /// The network did not say what came of it.
    Lost,
    /// The issuer has decided at once.
    Decided,
    ChallengeWanted,
    DecoupledWanted,
    /// The browser comes back from the challenge.
    ChallengeReturned,
    /// The issuer tells the result, through its network.
    ResultTold,
    /// The time that a decoupled authentication may take is over.
    TimeRanOut,
}

use Event::*;
use State::*;

/// Every step there is. What is not here cannot happen.
pub const STEPS: &[(State, Event, State)] = &[
    (Created, PageServed, Created),
    (Created, DeviceTold, Created),
    (Created, MethodCompleted, MethodDone),
    (Created, Asked, Authenticating),
    (MethodDone, PageServed, MethodDone),
    (MethodDone, DeviceTold, MethodDone),
    (MethodDone, Asked, Authenticating),
    (Authenticating, Refused, Created),
    (Authenticating, RefusedAfterMethod, MethodDone),
    (Authenticating, Lost, Dead),
    (Authenticating, Decided, Final),
    (Authenticating, ChallengeWanted, Challenge),
    (Authenticating, DecoupledWanted, Decoupled),
    (Challenge, ChallengeReturned, Challenge),
    (Challenge, ResultTold, Final),
    (Decoupled, ResultTold, Final),
    (Decoupled, TimeRanOut, Final),
    (Final, ChallengeReturned, Final),
];

/// A step that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session that is {} has no step for this", .0.name())]
pub struct Illegal(pub State);

impl State {
    /// Where an event leads from here.
    pub fn after(self, event: Event) -> Result<Self, Illegal> {
        STEPS
            .iter()
            .find(|(from, when, _)| (*from, *when) == (self, event))
            .map(|(_, _, to)| *to)
            .ok_or(Illegal(self))
    }
}

const OPENING: &str = "# 3-D Secure sessions

A session carries one card through the authentication of its issuer:
`POST /3ds/sessions`, then `POST /3ds/sessions/{id}/authenticate`, and, if the answer says `challenge` or
`decoupled_challenge`, `GET /3ds/sessions/{id}/challenge-result` once the cardholder has been asked.
[threeds-browser.md](threeds-browser.md) is about the cardholder's browser,
[../operate/threeds.md](../operate/threeds.md) about connecting card networks.

This page is written by `cargo xtask generate` from the tables that the code goes by.

## States

The interface shows no state; `authentication_status` says what merchants need. These are the steps that exist. What is
not drawn here is refused, and two steps at the same moment are one after the other.

";

const ERRORS: &str = "
## When the network cannot help

An authentication that fails is a success of the call: 200, and `authentication_status` says `failed` or `rejected`.
When the card's network, its issuer or the 3DS Server could not do their part, the answer is 424, with `error` in it:

| `service_status` | means | then |
| --- | --- | --- |
| 400 | the network does not take the request | mend it and authenticate again |
| 403 | the network does not know merchant or acquirer | check `mid` and `acquirer_bin` |
| 404 | no network knows the card; or there is no result yet | use another card; or ask later |
| 500 | card ranges are not known yet, or make no sense | try again |
| 502, 504 | nobody knows what became of the request | create a new session |

## What is asked for

The body of `authenticate`, field by field. What is missing or wrong is answered with 400, by the path of the field,
before any network sees it.

";

/// The page about sessions: states, failures, and the rules of a request.
pub fn reference() -> String {
    [OPENING, &diagram(), ERRORS, &requests::document()].concat()
}

/// The states and steps as a drawing, for the documentation.
fn diagram() -> String {
    let mut text = "```mermaid\nstateDiagram-v2\n    [*] --> created\n".to_owned();
    for (from, event, to) in STEPS {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "    {} --> {}: {}",
            from.name(),
            to.name(),
            words(*event)
        );
    }
    text.push_str("    created --> [*]: expired\n    method_done --> [*]: expired\n```\n\n");
    text.push_str("| state | means |\n| --- | --- |\n");
    for state in State::ALL {
        let _ = writeln!(text, "| {} | {} |", state.name(), state.meaning());
    }
    text
}

/// `MethodCompleted` is "method completed".
fn words(event: Event) -> String {
    let mut words = String::new();
    for letter in format!("{event:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_leads_to_one_state_at_most() {
        for (place, (from, event, _)) in STEPS.iter().enumerate() {
            let again = STEPS[place + 1..].iter();
            assert!(
                again
                    .clone()
                    .all(|(other, when, _)| (other, when) != (from, event))
            );
        }
        for state in State::ALL.iter().copied() {
            assert_eq!(State::from_number(state as i16), Some(state));
        }
    }

    #[test]
    fn nothing_leads_out_of_an_end_and_nothing_is_asked_twice() {
        for (from, event, to) in STEPS {
            assert_ne!(*from, Dead, "{event:?}");
            assert!(*from != Final || *to == Final, "{event:?}");
            if *event == Asked {
                assert!(matches!(from, Created | MethodDone));
            }
        }
        for state in [Challenge, Decoupled, Final, Dead, Authenticating] {
            assert_eq!(state.after(Asked), Err(Illegal(state)));
        }
    }

    #[test]
    fn every_state_can_be_reached_from_a_new_session() {
        let mut reached = vec![Created];
        while let Some((_, _, to)) = STEPS
            .iter()
            .find(|(from, _, to)| reached.contains(from) && !reached.contains(to))
        {
            reached.push(*to);
        }
        assert_eq!(reached.len(), State::ALL.len());
    }
}
