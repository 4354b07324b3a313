//! The test cards: numbers that always end the same way, and what each of them is for.

use crate::networks;

/// How an authentication with a test card goes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Scenario {
    FrictionlessSuccess,
    ChallengeSuccess,
    ChallengeSuccessWithoutMethod,
    MandatedChallengeSuccess,
    OutOfBandChallengeSuccess,
    AttemptedAfterChallenge,
    FrictionlessAttempted,
    FrictionlessFailed,
    FrictionlessUnavailable,
    FrictionlessRejected,
    ChallengeFailed,
    OutOfBandChallengeFailed,
    UnavailableAfterChallenge,
    RejectedAfterChallenge,
    DirectoryServerError,
    InternalError,
    WithoutThreeds,
    CoBadged,
}

/// What a 3DS Server is to see, in the codes of the messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Whether the card's range has a 3DS Method.
    pub has_method: bool,
    /// `transStatus` of the ARes; none if there is no ARes.
    pub directory_status: Option<&'static str>,
    /// `transStatusReason` of the ARes.
    pub directory_reason: Option<&'static str>,
    /// `authenticationType` of a challenge.
    pub challenge_type: Option<&'static str>,
    /// `acsChallengeMandated` of a challenge.
    pub is_mandated: bool,
    /// `transStatus` of the RReq, or of the ARes if there is no challenge.
    pub final_status: Option<&'static str>,
    pub final_reason: Option<&'static str>,
    /// `transStatus` of the CRes that passes through the browser.
    pub browser_status: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub struct TestCard {
    pub number: &'static str,
    pub scenario: Scenario,
    pub is_luhn_valid: bool,
    /// From an earlier sandbox: still seen in tests of clients.
    pub is_earlier: bool,
}

impl TestCard {
    /// The directory server that knows the card; none for the card without 3DS.
    pub fn network(&self) -> Option<&'static str> {
        match self.scenario {
            Scenario::WithoutThreeds => None,
            _ => networks::of_number(self.number),
        }
    }

    /// The second directory server of a co-badged card.
    pub fn other_network(&self) -> Option<&'static str> {
        (self.scenario == Scenario::CoBadged).then_some("cartes-bancaires")
    }

    pub fn expected(&self) -> Expected {
        self.scenario.expected()
    }
}

impl Scenario {
    pub fn expected(self) -> Expected {
        use Scenario as S;
        match self {
            S::FrictionlessSuccess => frictionless("Y", None),
            S::FrictionlessAttempted => frictionless("A", None),
            S::FrictionlessFailed => frictionless("N", Some("01")),
            S::FrictionlessUnavailable => frictionless("U", Some("13")),
            S::FrictionlessRejected => frictionless("R", Some("11")),
            S::ChallengeSuccess | S::CoBadged => challenge("01", "Y", None),
            S::ChallengeSuccessWithoutMethod => Expected {
                has_method: false,
                ..challenge("01", "Y", None)
            },
            S::MandatedChallengeSuccess => Expected {
                is_mandated: true,
                ..challenge("02", "Y", None)
            },
            S::OutOfBandChallengeSuccess => challenge("03", "Y", None),
            S::AttemptedAfterChallenge => challenge("02", "A", None),
            S::ChallengeFailed => challenge("02", "N", Some("01")),
            S::OutOfBandChallengeFailed => challenge("03", "N", Some("01")),
            S::UnavailableAfterChallenge => challenge("02", "U", Some("13")),
            S::RejectedAfterChallenge => challenge("02", "R", Some("11")),
            S::DirectoryServerError => NOTHING,
            S::InternalError | S::WithoutThreeds => Expected {
                has_method: false,
                ..NOTHING
            },
        }
    }

    /// A session with such a card cannot even be created.
    pub fn is_refused_at_create(self) -> bool {
        matches!(self, Self::InternalError | Self::WithoutThreeds)
    }
}

const NOTHING: Expected = Expected {
    has_method: true,
    directory_status: None,
    directory_reason: None,
    challenge_type: None,
    is_mandated: false,
    final_status: None,
    final_reason: None,
    browser_status: None,
};

fn frictionless(status: &'static str, reason: Option<&'static str>) -> Expected {
    Expected {
        directory_status: Some(status),
        directory_reason: reason,
        final_status: Some(status),
        final_reason: reason,
        ..NOTHING
    }
}

fn challenge(kind: &'static str, status: &'static str, reason: Option<&'static str>) -> Expected {
    Expected {
        directory_status: Some("C"),
        challenge_type: Some(kind),
        final_status: Some(status),
        final_reason: reason,
        browser_status: Some(if matches!(status, "Y" | "A") {
            "Y"
        } else {
            "N"
        }),
        ..NOTHING
    }
}

const fn card(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        number,
        scenario,
        is_luhn_valid: true,
        is_earlier: false,
    }
}

/// Numbers that only a vault that exempts them from the check digit can keep.
const fn unchecked(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        is_luhn_valid: false,
        ..card(number, scenario)
    }
}

const fn earlier(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        is_earlier: true,
        ..card(number, scenario)
    }
}

static CARDS: &[TestCard] = &[
    card("5204247750001471", Scenario::FrictionlessSuccess),
    unchecked("6011601160116011", Scenario::FrictionlessSuccess),
    card("340000000004001", Scenario::FrictionlessSuccess),
    unchecked("4200000000000002", Scenario::FrictionlessSuccess),
    card("4000020000000000", Scenario::ChallengeSuccess),
    card("370000000000002", Scenario::ChallengeSuccess),
    card("3566002020360505", Scenario::ChallengeSuccess),
    card("3566006663297692", Scenario::ChallengeSuccess),
    unchecked("4200000000000004", Scenario::ChallengeSuccess),
    card("4005562231212123", Scenario::ChallengeSuccessWithoutMethod),
    unchecked("4200000000000014", Scenario::ChallengeSuccessWithoutMethod),
    card("4761369980320253", Scenario::MandatedChallengeSuccess),
    card("5200000000001104", Scenario::MandatedChallengeSuccess),
    unchecked("4200000000000015", Scenario::MandatedChallengeSuccess),
    card("4000000000000341", Scenario::OutOfBandChallengeSuccess),
    unchecked("4200000000000016", Scenario::OutOfBandChallengeSuccess),
    card("4005571701111111", Scenario::AttemptedAfterChallenge),
    unchecked("4200000000000008", Scenario::AttemptedAfterChallenge),
    card("4111111111111111", Scenario::FrictionlessAttempted),
    card("5424180011113336", Scenario::FrictionlessAttempted),
    unchecked("4200000000000003", Scenario::FrictionlessAttempted),
    card("4264281511112228", Scenario::FrictionlessFailed),
    card("5424180000000171", Scenario::FrictionlessFailed),
    unchecked("4200000000000005", Scenario::FrictionlessFailed),
    card("5405001111111165", Scenario::FrictionlessUnavailable),
    unchecked("4200000000000006", Scenario::FrictionlessUnavailable),
    card("5405001111111116", Scenario::FrictionlessRejected),
    unchecked("4200000000000007", Scenario::FrictionlessRejected),
    card("4055011111111111", Scenario::ChallengeFailed),
    card("5427660064241339", Scenario::ChallengeFailed),
    unchecked("4200000000000009", Scenario::ChallengeFailed),
    card("6011361011110004", Scenario::OutOfBandChallengeFailed),
    unchecked("4200000000000017", Scenario::OutOfBandChallengeFailed),
    card("6011361000008888", Scenario::UnavailableAfterChallenge),
    unchecked("4200000000000010", Scenario::UnavailableAfterChallenge),
    card("6011361000001115", Scenario::RejectedAfterChallenge),
    unchecked("4200000000000011", Scenario::RejectedAfterChallenge),
    card("4264281500003339", Scenario::DirectoryServerError),
    card("5424180011110001", Scenario::DirectoryServerError),
    unchecked("4200000000000012", Scenario::DirectoryServerError),
    card("4264281500001119", Scenario::InternalError),
    unchecked("4200000000000013", Scenario::InternalError),
    unchecked("4100000000000003", Scenario::WithoutThreeds),
    card("4150580996517927", Scenario::CoBadged),
    earlier("5555555555554444", Scenario::FrictionlessSuccess),
    earlier("34343434343434", Scenario::FrictionlessSuccess),
    earlier("5454545454545454", Scenario::FrictionlessAttempted),
    earlier("4462030000000000", Scenario::FrictionlessFailed),
    earlier("36148900647913", Scenario::FrictionlessUnavailable),
    earlier("6759649826438453", Scenario::FrictionlessRejected),
    earlier("4917610000000000", Scenario::ChallengeSuccess),
    earlier("3528000700000000", Scenario::AttemptedAfterChallenge),
    earlier("36700102000000", Scenario::ChallengeFailed),
    earlier("6011000400000000", Scenario::UnavailableAfterChallenge),
    earlier("4444333322221111", Scenario::RejectedAfterChallenge),
    earlier("122000000000003", Scenario::DirectoryServerError),
    earlier("5019717010103742", Scenario::InternalError),
];

/// All test cards; everything else follows the number's last digits or passes without friction.
pub fn test_cards() -> &'static [TestCard] {
    CARDS
}

pub(crate) fn find(number: &str) -> Option<&'static TestCard> {
    CARDS.iter().find(|card| card.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes_luhn(number: &str) -> bool {
        let sum: u32 = number
            .bytes()
            .rev()
            .enumerate()
            .map(|(at, digit)| match (u32::from(digit - b'0'), at % 2) {
                (digit, 0) => digit,
                (digit, _) => digit * 2 / 10 + digit * 2 % 10,
            })
            .sum();
        sum.is_multiple_of(10)
    }

    #[test]
    fn cards_are_told_apart_and_say_truly_whether_they_pass_luhn() {
        let mut wrong = Vec::new();
        for card in test_cards() {
            if passes_luhn(card.number) != card.is_luhn_valid {
                wrong.push(card.number);
            }
            let same = |other: &&TestCard| other.number == card.number;
            assert_eq!(test_cards().iter().filter(same).count(), 1);
            if card.scenario != Scenario::WithoutThreeds {
                assert!(card.network().is_some(), "{}", card.number);
            }
        }
        assert_eq!(wrong, Vec::<&str>::new());
    }
}
