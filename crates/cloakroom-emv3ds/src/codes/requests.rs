//! What requests say.

use super::codes;
use crate::version::Version;

codes! {
    /// Whether something is paid.
    AuthenticationCategory {
        Payment = "01" "payment",
        NonPayment = "02" "non-payment",
    }

    /// Where the cardholder is. In the third case there is none: the merchant asks alone.
    DeviceChannel {
        App = "01" "app",
        Browser = "02" "browser",
        ThreeRi = "03" "3ri",
    }

    /// What the merchant wishes.
    ChallengePreference {
        NoPreference = "01" "no-preference",
        NoChallenge = "02" "no-challenge",
        ChallengeRequested = "03" "challenge-requested",
        ChallengeMandated = "04" "challenge-mandated",
        RiskAnalysisPerformed = "05" "no-challenge-risk-analysis-performed",
        DataSharingOnly = "06" "no-challenge-data-sharing-only",
        StrongConsumerAuth = "07" "no-challenge-strong-consumer-auth",
        WhitelistExemption = "08" "no-challenge-whitelist-exemption",
        WhitelistPrompt = "09" "challenge-requested-whitelist-prompt",
        CartesBancaires = "90" "cartes-bancaires",
    }

    TransactionType {
        Purchase = "01" "purchase",
        CheckAcceptance = "03" "check-acceptance",
        AccountFunding = "10" "account-funding",
        QuasiCash = "11" "quasi-cash",
        PrepaidActivationLoad = "28" "prepaid-activation-load",
    }

    AccountType {
        Credit = "02" "credit",
        Debit = "03" "debit",
    }

    /// How long there has been an account, or a card in it.
    AccountAge {
        NoAccount = "01" "no-account",
        CreatedThisTransaction = "02" "created-this-transaction",
        LessThan30Days = "03" "less-than-30-days",
        From30To60Days = "04" "30-to-60-days",
        MoreThan60Days = "05" "more-than-60-days",
    }

    AccountChange {
        ChangedThisTransaction = "01" "changed-this-transaction",
        LessThan30Days = "02" "less-than-30-days",
        From30To60Days = "03" "30-to-60-days",
        MoreThan60Days = "04" "more-than-60-days",
    }

    PasswordChange {
        NoChange = "01" "no-change",
        ChangedThisTransaction = "02" "changed-this-transaction",
        LessThan30Days = "03" "less-than-30-days",
        From30To60Days = "04" "30-to-60-days",
        MoreThan60Days = "05" "more-than-60-days",
    }

    /// When the shipping address was used first.
    AddressUse {
        ThisTransaction = "01" "this-transaction" | "address-first-used",
        LessThan30Days = "02" "less-than-30-days",
        From30To60Days = "03" "30-to-60-days",
        MoreThan60Days = "04" "more-than-60-days",
    }

    /// How the cardholder logged in at the merchant. The last two exist from 2.2.0.
    AuthenticationMethod {
        NoLogin = "01" "no-login",
        UsernamePassword = "02" "username-password",
        FederatedId = "03" "federated-id",
        IssuerCredentials = "04" "issuer-credentials",
        ThirdParty = "05" "third-party",
        Fido = "06" "fido",
        FidoDataSigned = "07" "fido-data-signed",
        SrcAssuranceData = "08" "src-assurance-data",
    }

    /// How the cardholder was authenticated before.
    PriorMethod {
        Frictionless = "01" "frictionless",
        Challenged = "02" "challenged",
        AvsVerified = "03" "avs-verified",
        Other = "04" "other",
    }

    DeliveryTime {
        ElectronicDelivery = "01" "electronic-delivery",
        SameDayShipping = "02" "same-day-shipping",
        OvernightShipping = "03" "overnight-shipping",
        TwoOrMoreDayShipping = "04" "two-or-more-day-shipping",
    }

    ShippingMethod {
        ToBillingAddress = "01" "ship-to-billing-address",
        ToVerifiedAddress = "02" "ship-to-verified-address",
        ToDifferentAddress = "03" "ship-to-different-address",
        ToStore = "04" "ship-to-store",
        DigitalGoods = "05" "digital-goods",
        TravelAndEventTickets = "06" "travel-and-event-tickets",
        Other = "07" "other",
    }
}

impl ChallengePreference {
    /// What to send in that version: the oldest one does not know all preferences, so the nearest
    /// one that it knows is sent.
    pub fn for_version(self, version: Version) -> Self {
        if version > Version::V2_1_0 {
            return self;
        }
        match self {
            Self::RiskAnalysisPerformed
            | Self::DataSharingOnly
            | Self::StrongConsumerAuth
            | Self::WhitelistExemption => Self::NoChallenge,
            Self::WhitelistPrompt => Self::ChallengeRequested,
            known => known,
        }
    }
}

impl AuthenticationMethod {
    pub fn since(self) -> Version {
        match self {
            Self::FidoDataSigned | Self::SrcAssuranceData => Version::V2_2_0,
            _ => Version::V2_1_0,
        }
    }
}

macro_rules! authentication_types {
    ($($value:ident $name:literal $customer:expr, $merchant:expr;)*) => {
        /// What an authentication is for. Its code depends on who asks, so it has two.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AuthenticationType {
            $($value),*
        }

        impl AuthenticationType {
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// As in our API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$value),)* _ => None }
            }

            /// `threeDSRequestorAuthenticationInd`, if a customer may do it.
            pub const fn requestor_code(self) -> Option<&'static str> {
                match self { $(Self::$value => $customer),* }
            }

            /// `threeRIInd`, if a merchant may do it without the customer.
            pub const fn three_ri_code(self) -> Option<&'static str> {
                match self { $(Self::$value => $merchant),* }
            }
        }
    };
}

authentication_types! {
    PaymentTransaction "payment-transaction" Some("01"), None;
    RecurringTransaction "recurring-transaction" Some("02"), Some("01");
    InstallmentTransaction "installment-transaction" Some("03"), Some("02");
    AddCard "add-card" Some("04"), Some("03");
    MaintainCard "maintain-card" Some("05"), Some("04");
    CardholderEmvVerification "cardholder-emv-verification" Some("06"), None;
    // There is no code for it with a customer; to add a card is the nearest.
    AccountVerification "account-verification" Some("04"), Some("05");
    SplitOrDelayedShipment "split-or-delayed-shipment" None, Some("06");
    TopUp "top-up" None, Some("07");
    MailOrder "mail-order" None, Some("08");
    TelephoneOrder "telephone-order" None, Some("09");
    WhitelistStatusCheck "whitelist-status-check" None, Some("10");
    OtherPayment "other-payment" None, Some("11");
    BillingAgreement "billing-agreement" None, Some("12");
}

impl AuthenticationType {
    pub const fn is_for_customer(self) -> bool {
        self.requestor_code().is_some()
    }

    pub const fn is_for_merchant(self) -> bool {
        self.three_ri_code().is_some()
    }
}

/// `shipNameIndicator`: whether the names of account and shipping address are the same.
pub const fn ship_name_match_code(same: bool) -> &'static str {
    if same { "01" } else { "02" }
}

/// `suspiciousAccActivity`: whether something suspicious was seen.
pub const fn suspicious_activity_code(seen: bool) -> &'static str {
    if seen { "02" } else { "01" }
}

/// `preOrderPurchaseInd`: whether the goods come later.
pub const fn pre_order_code(pre_ordered: bool) -> &'static str {
    if pre_ordered { "02" } else { "01" }
}

/// `reorderItemsInd`: whether the goods were ordered before.
pub const fn reorder_code(reordered: bool) -> &'static str {
    if reordered { "02" } else { "01" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_do_what_has_a_code() {
        let codes = |name| {
            let known = AuthenticationType::from_name(name).unwrap();
            assert_eq!(known.name(), name);
            (known.requestor_code(), known.three_ri_code())
        };
        assert_eq!(codes("payment-transaction"), (Some("01"), None));
        assert_eq!(codes("recurring-transaction"), (Some("02"), Some("01")));
        assert_eq!(codes("account-verification"), (Some("04"), Some("05")));
        assert_eq!(codes("billing-agreement"), (None, Some("12")));
        let count = |may: fn(AuthenticationType) -> bool| {
            AuthenticationType::ALL
                .iter()
                .filter(|known| may(**known))
                .count()
        };
        assert_eq!(count(AuthenticationType::is_for_customer), 7);
        assert_eq!(count(AuthenticationType::is_for_merchant), 12);
    }

    #[test]
    fn the_oldest_version_gets_the_nearest_preference() {
        let sent = |code, version| {
            let preference = ChallengePreference::from_code(code).unwrap();
            preference.for_version(version).code()
        };
        for code in ["05", "06", "07", "08"] {
            assert_eq!(sent(code, Version::V2_1_0), "02");
            assert_eq!(sent(code, Version::V2_2_0), code);
        }
        assert_eq!(sent("09", Version::V2_1_0), "03");
        for code in ["01", "02", "03", "04", "90"] {
            assert_eq!(sent(code, Version::V2_1_0), code);
        }
    }

    #[test]
    fn yes_is_not_the_same_code_everywhere() {
        assert_eq!(
            (ship_name_match_code(true), ship_name_match_code(false)),
            ("01", "02")
        );
        assert_eq!(
            (
                suspicious_activity_code(true),
                suspicious_activity_code(false)
            ),
            ("02", "01")
        );
        assert_eq!((pre_order_code(true), pre_order_code(false)), ("02", "01"));
        assert_eq!((reorder_code(true), reorder_code(false)), ("02", "01"));
        assert_eq!(
            AddressUse::from_name("address-first-used"),
            Some(AddressUse::ThisTransaction)
        );
    }
}
