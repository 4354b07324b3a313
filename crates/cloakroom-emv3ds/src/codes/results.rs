//! Codes of responses and results.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::codes;

codes! {
    /// `transStatus`: the initial or final authentication result.
    TransStatus {
        Successful = "Y" "successful",
        Attempted = "A" "attempted",
        Failed = "N" "failed",
        Unavailable = "U" "unavailable",
        Challenge = "C" "challenge",
        DecoupledChallenge = "D" "decoupled_challenge",
        Rejected = "R" "rejected",
        Informational = "I" "informational",
        // Secure Payment Confirmation is never requested, so this maps to unavailable.
        PaymentConfirmation = "S" "unavailable",
    }

    /// `transStatusReason` codes of all networks. See [`reason_name`] for network-specific codes.
    StatusReason {
        CardAuthenticationFailed = "01" "card-authentication-failed",
        UnknownDevice = "02" "unknown-device",
        UnsupportedDevice = "03" "unsupported-device",
        TooManyAuthenticationAttempts = "04" "too-many-authentication-attempts",
        CardExpired = "05" "card-expired",
        InvalidCardNumber = "06" "invalid-card-number",
        InvalidTransaction = "07" "invalid-transaction",
        NoCardRecord = "08" "no-card-record",
        SecurityFailure = "09" "security-failure",
        StolenCard = "10" "stolen-card",
        SuspectedFraud = "11" "suspected-fraud",
        TransactionNotPermitted = "12" "transaction-not-permitted",
        CardholderNotEnrolled = "13" "cardholder-not-enrolled",
        TimeoutAtAcs = "14" "timeout-at-acs",
        LowConfidence = "15" "low-confidence",
        MediumConfidence = "16" "medium-confidence",
        HighConfidence = "17" "high-confidence",
        VeryHighConfidence = "18" "very-high-confidence",
        MaxChallengesExceeded = "19" "max-challenges-exceeded",
        NonPaymentNotSupported = "20" "non-payment-transaction-not-supported",
        ThreeRiNotSupported = "21" "3ri-not-supported",
        AcsTechnicalIssue = "22" "acs-technical-issue",
        DecoupledAuthenticationRequired = "23" "decoupled-authentication-required",
        DecoupledAuthenticationTimeout = "24" "decoupled-authentication-timeout",
        InsufficientDecoupledTime = "25" "insufficient-decoupled-authentication-time",
        AttemptedButNotPerformed = "26" "authentication-attempted-but-not-performed",
    }

    /// `challengeCancel`: why a challenge was not completed.
    ChallengeCancel {
        CardholderCanceled = "01" "cardholder-canceled",
        RequestorCanceled = "02" "requestor-canceled",
        TransactionAbandoned = "03" "transaction-abandoned",
        AcsTimeout = "04" "acs-timeout",
        RequestNotReceived = "05" "acs-timeout-request-not-received",
        TransactionError = "06" "error",
        Unknown = "07" "unknown",
        SdkTimeout = "08" "unknown",
        ErrorAfterResponse = "09" "error",
        ErrorAfterRequest = "10" "error",
    }

    /// Trust list status of the merchant.
    ListStatus {
        Trusted = "Y" "merchant-trusted",
        NotTrusted = "N" "merchant-not-trusted",
        NotEligible = "E" "not-eligible",
        PendingConfirmation = "P" "pending-confirmation",
        Rejected = "R" "request-to-trust-rejected",
        Unknown = "U" "unknown",
    }

    /// The component that set the trust list status.
    ListStatusSource {
        ThreeDsServer = "01" "3ds-server",
        DirectoryServer = "02" "directory-server",
        Acs = "03" "acs",
    }

    /// How the cardholder is or was challenged. The codes are those of `authenticationType`.
    ChallengeType {
        Static = "01" "static",
        Dynamic = "02" "dynamic",
        OutOfBand = "03" "out-of-band",
        Decoupled = "04" "decoupled",
    }

    /// Capabilities of the ACS of a card range. Codes from 80 are reserved for the networks.
    AcsInformation {
        AuthenticationAvailable = "01" "threeds-auth-available",
        AttemptsSupported = "02" "threeds-attempts-supported",
        DecoupledSupported = "03" "threeds-decoupled-auth-supported",
        WhitelistingSupported = "04" "threeds-whitelisting-supported",
    }
}

impl Serialize for TransStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for TransStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::from_code(&code).ok_or_else(|| D::Error::custom("not a transaction status"))
    }
}

impl TransStatus {
    /// Whether an `ARes` with this status ends the authentication.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Challenge | Self::DecoupledChallenge)
    }
}

impl ChallengeType {
    /// From `authenticationMethod` of 2.3.1, which has more values than the API.
    pub fn from_method(code: &str) -> Option<Self> {
        match code {
            "01" => Some(Self::Static),
            "07" | "08" | "09" | "11" => Some(Self::OutOfBand),
            "12" => Some(Self::Decoupled),
            "02" | "03" | "04" | "05" | "06" | "10" | "13" | "14" | "15" | "16" => {
                Some(Self::Dynamic)
            }
            _ => None,
        }
    }
}

/// Network-specific reasons: network name in the API, code, name.
const NETWORK_REASONS: &[(&str, &str, &str)] = &[
    ("Visa", "80", "error-connecting-to-acs"),
    ("Visa", "81", "acs-timed-out"),
    ("Visa", "82", "invalid-response-from-acs"),
    ("Visa", "83", "system-error-response-from-acs"),
    ("Visa", "84", "internal-error-while-generating-cavv"),
    ("Visa", "85", "vmid-not-eligible-for-requested-program"),
    ("Visa", "86", "protocol-version-not-supported-by-acs"),
    (
        "Visa",
        "87",
        "transaction-excluded-from-attempts-processing",
    ),
    ("Mastercard", "80", "identity-check-insights"),
];

/// The API name of a `transStatusReason` code, if known.
pub fn reason_name(network: &str, code: &str) -> Option<&'static str> {
    if let Some(reason) = StatusReason::from_code(code) {
        return Some(reason.name());
    }
    let named =
        |(of, known, _): &&(&str, &str, &str)| of.eq_ignore_ascii_case(network) && *known == code;
    NETWORK_REASONS.iter().find(named).map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_reasons_are_named_for_their_network_only() {
        assert_eq!(
            reason_name("Visa", "01"),
            Some("card-authentication-failed")
        );
        assert_eq!(reason_name("visa", "80"), Some("error-connecting-to-acs"));
        assert_eq!(
            reason_name("Mastercard", "80"),
            Some("identity-check-insights")
        );
        assert_eq!(reason_name("Mastercard", "81"), None);
        assert_eq!(reason_name("JCB", "80"), None);
        assert_eq!(reason_name("Visa", "27"), None);
        assert_eq!(StatusReason::ALL.len(), 26);
    }

    #[test]
    fn authentication_methods_map_to_challenge_types() {
        let named = |code| ChallengeType::from_method(code).map(ChallengeType::name);
        assert_eq!(named("01"), Some("static"));
        for code in ["02", "03", "04", "05", "06", "10", "13", "14", "15", "16"] {
            assert_eq!(named(code), Some("dynamic"));
        }
        for code in ["07", "08", "09", "11"] {
            assert_eq!(named(code), Some("out-of-band"));
        }
        assert_eq!(named("12"), Some("decoupled"));
        assert_eq!(named("17"), None);
    }

    #[test]
    fn codes_sharing_a_name_resolve_to_the_first() {
        assert_eq!(
            TransStatus::from_name("unavailable"),
            Some(TransStatus::Unavailable)
        );
        assert_eq!(TransStatus::PaymentConfirmation.name(), "unavailable");
        assert_eq!(
            ChallengeCancel::from_code("08").map(ChallengeCancel::name),
            Some("unknown")
        );
        assert_eq!(
            ChallengeCancel::from_code("10").map(ChallengeCancel::name),
            Some("error")
        );
        assert!(!TransStatus::Challenge.is_final() && TransStatus::Informational.is_final());
    }
}
