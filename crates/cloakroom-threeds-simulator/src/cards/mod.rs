//! Test cards with a fixed scenario.

use crate::networks;

/// The course of an authentication with a test card.
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

/// The expected results at the 3DS Server, as message codes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Whether the card range has a 3DS Method.
    pub has_method: bool,
    /// `transStatus` of the ARes, if any.
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
    /// From an earlier sandbox; still used by client tests.
    pub is_legacy: bool,
}

impl TestCard {
    /// The network whose DS has the card; `None` for the card without 3DS.
    pub fn network(&self) -> Option<&'static str> {
        match self.scenario {
            Scenario::WithoutThreeds => None,
            _ => networks::for_number(self.number),
        }
    }

    /// The second network of a co-badged card.
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
            S::DirectoryServerError => NO_RESPONSE,
            S::InternalError | S::WithoutThreeds => Expected {
                has_method: false,
                ..NO_RESPONSE
            },
        }
    }

    /// Whether creating a session with the card fails.
    pub fn fails_at_session_creation(self) -> bool {
        matches!(self, Self::InternalError | Self::WithoutThreeds)
    }
}

const NO_RESPONSE: Expected = Expected {
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
        ..NO_RESPONSE
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
        ..NO_RESPONSE
    }
}

const fn card(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        number,
        scenario,
        is_luhn_valid: true,
        is_legacy: false,
    }
}

/// A number without a valid check digit; a vault must exempt it from the Luhn check.
const fn luhn_invalid(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        is_luhn_valid: false,
        ..card(number, scenario)
    }
}

const fn legacy(number: &'static str, scenario: Scenario) -> TestCard {
    TestCard {
        is_legacy: true,
        ..card(number, scenario)
    }
}

static CARDS: &[TestCard] = &[
    card("5204247750001471", Scenario::FrictionlessSuccess),
    luhn_invalid("6011601160116011", Scenario::FrictionlessSuccess),
    card("340000000004001", Scenario::FrictionlessSuccess),
    luhn_invalid("4200000000000002", Scenario::FrictionlessSuccess),
    card("4000020000000000", Scenario::ChallengeSuccess),
    card("370000000000002", Scenario::ChallengeSuccess),
    card("3566002020360505", Scenario::ChallengeSuccess),
    card("3566006663297692", Scenario::ChallengeSuccess),
    luhn_invalid("4200000000000004", Scenario::ChallengeSuccess),
    card("4005562231212123", Scenario::ChallengeSuccessWithoutMethod),
    luhn_invalid("4200000000000014", Scenario::ChallengeSuccessWithoutMethod),
    card("4761369980320253", Scenario::MandatedChallengeSuccess),
    card("5200000000001104", Scenario::MandatedChallengeSuccess),
    luhn_invalid("4200000000000015", Scenario::MandatedChallengeSuccess),
    card("4000000000000341", Scenario::OutOfBandChallengeSuccess),
    luhn_invalid("4200000000000016", Scenario::OutOfBandChallengeSuccess),
    card("4005571701111111", Scenario::AttemptedAfterChallenge),
    luhn_invalid("4200000000000008", Scenario::AttemptedAfterChallenge),
    card("4111111111111111", Scenario::FrictionlessAttempted),
    card("5424180011113336", Scenario::FrictionlessAttempted),
    luhn_invalid("4200000000000003", Scenario::FrictionlessAttempted),
    card("4264281511112228", Scenario::FrictionlessFailed),
    card("5424180000000171", Scenario::FrictionlessFailed),
    luhn_invalid("4200000000000005", Scenario::FrictionlessFailed),
    card("5405001111111165", Scenario::FrictionlessUnavailable),
    luhn_invalid("4200000000000006", Scenario::FrictionlessUnavailable),
    card("5405001111111116", Scenario::FrictionlessRejected),
    luhn_invalid("4200000000000007", Scenario::FrictionlessRejected),
    card("4055011111111111", Scenario::ChallengeFailed),
    card("5427660064241339", Scenario::ChallengeFailed),
    luhn_invalid("4200000000000009", Scenario::ChallengeFailed),
    card("6011361011110004", Scenario::OutOfBandChallengeFailed),
    luhn_invalid("4200000000000017", Scenario::OutOfBandChallengeFailed),
    card("6011361000008888", Scenario::UnavailableAfterChallenge),
    luhn_invalid("4200000000000010", Scenario::UnavailableAfterChallenge),
    card("6011361000001115", Scenario::RejectedAfterChallenge),
    luhn_invalid("4200000000000011", Scenario::RejectedAfterChallenge),
    card("4264281500003339", Scenario::DirectoryServerError),
    card("5424180011110001", Scenario::DirectoryServerError),
    luhn_invalid("4200000000000012", Scenario::DirectoryServerError),
    card("4264281500001119", Scenario::InternalError),
    luhn_invalid("4200000000000013", Scenario::InternalError),
    luhn_invalid("4100000000000003", Scenario::WithoutThreeds),
    card("4150580996517927", Scenario::CoBadged),
    legacy("5555555555554444", Scenario::FrictionlessSuccess),
    legacy("34343434343434", Scenario::FrictionlessSuccess),
    legacy("5454545454545454", Scenario::FrictionlessAttempted),
    legacy("4462030000000000", Scenario::FrictionlessFailed),
    legacy("36148900647913", Scenario::FrictionlessUnavailable),
    legacy("6759649826438453", Scenario::FrictionlessRejected),
    legacy("4917610000000000", Scenario::ChallengeSuccess),
    legacy("3528000700000000", Scenario::AttemptedAfterChallenge),
    legacy("36700102000000", Scenario::ChallengeFailed),
    legacy("6011000400000000", Scenario::UnavailableAfterChallenge),
    legacy("4444333322221111", Scenario::RejectedAfterChallenge),
    legacy("122000000000003", Scenario::DirectoryServerError),
    legacy("5019717010103742", Scenario::InternalError),
];

/// All test cards. Other numbers follow their last digits or authenticate frictionless.
pub fn test_cards() -> &'static [TestCard] {
    CARDS
}

pub(crate) fn find(number: &str) -> Option<&'static TestCard> {
    CARDS.iter().find(|card| card.number == number)
}

#[cfg(test)]
mod tests;
