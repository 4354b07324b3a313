//! Properties of the transition table.

use super::*;

#[test]
fn transitions_are_unambiguous() {
    for (place, (from, event, _)) in TRANSITIONS.iter().enumerate() {
        let reload = TRANSITIONS[place + 1..].iter();
        assert!(
            reload
                .clone()
                .all(|(other, when, _)| (other, when) != (from, event))
        );
    }
    for state in State::ALL.iter().copied() {
        assert_eq!(State::from_number(state as i16), Some(state));
    }
}

#[test]
fn end_states_are_final_and_authentication_starts_once() {
    for (from, event, to) in TRANSITIONS {
        assert!(*from != Dead || *to == Dead, "{event:?}");
        assert!(*from != Final || *to == Final, "{event:?}");
        if *event == AuthenticationRequested {
            assert!(matches!(from, Created | MethodDone));
        }
    }
    for state in [Challenge, Decoupled, Final, Dead, Authenticating] {
        assert_eq!(
            state.after(AuthenticationRequested),
            Err(IllegalTransition(state))
        );
    }
}

#[test]
fn every_state_is_reachable() {
    let mut reached = vec![Created];
    while let Some((_, _, to)) = TRANSITIONS
        .iter()
        .find(|(from, _, to)| reached.contains(from) && !reached.contains(to))
    {
        reached.push(*to);
    }
    assert_eq!(reached.len(), State::ALL.len());
}
