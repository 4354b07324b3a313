//! Codes of requests.

use super::codes;
use crate::version::Version;

codes! {
    /// `messageCategory`.
    AuthenticationCategory {
        Payment = "01" "payment",
        NonPayment = "02" "non-payment",
    }

    /// `deviceChannel`. 3RI is initiated by the 3DS Requestor, without the cardholder.
    DeviceChannel {
        App = "01" "app",
        Browser = "02" "browser",
        ThreeRi = "03" "3ri",
    }

    /// `threeDSRequestorChallengeInd`.
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

    /// Age of an account, or of a card in it.
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

    /// When the shipping address was first used.
    AddressUse {
        ThisTransaction = "01" "this-transaction" | "address-first-used",
        LessThan30Days = "02" "less-than-30-days",
        From30To60Days = "03" "30-to-60-days",
        MoreThan60Days = "04" "more-than-60-days",
    }

    /// How the 3DS Requestor authenticated the cardholder. The last two exist from 2.2.0.
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

    /// How the cardholder was authenticated previously.
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
    /// The preference to send in this version. 2.1.0 has fewer; the closest one is used.
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
        /// The purpose of an authentication. It has one code for the cardholder channels and one for 3RI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AuthenticationType {
            $($value),*
        }

        impl AuthenticationType {
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// The name in the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$value),)* _ => None }
            }

            /// `threeDSRequestorAuthenticationInd`, if allowed on the app and browser channels.
            pub const fn requestor_code(self) -> Option<&'static str> {
                match self { $(Self::$value => $customer),* }
            }

            /// `threeRIInd`, if allowed on the 3RI channel.
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
    // Has no code on the app and browser channels; add-card is the closest.
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

/// `shipNameIndicator`: whether the account name and the shipping name are the same.
pub const fn ship_name_match_code(same: bool) -> &'static str {
    if same { "01" } else { "02" }
}

/// `suspiciousAccActivity`: whether suspicious activity was observed.
pub const fn suspicious_activity_code(observed: bool) -> &'static str {
    if observed { "02" } else { "01" }
}

/// `preOrderPurchaseInd`: whether the merchandise is available later.
pub const fn pre_order_code(pre_ordered: bool) -> &'static str {
    if pre_ordered { "02" } else { "01" }
}

/// `reorderItemsInd`: whether the merchandise was ordered before.
pub const fn reorder_code(reordered: bool) -> &'static str {
    if reordered { "02" } else { "01" }
}

#[cfg(test)]
mod tests;
