//! `CReq`, `CRes`, `RRes`, `Erro`, and the message extensions.

use super::Format::{AnyObject, Boolean, Codes, Digits, Letters, Objects, Text, Uuid, Version};
use super::field::{Field, optional, required};
use crate::version::Version::{V2_1_0, V2_2_0};

/// Every message except `Erro` may have extensions.
pub(super) const EXTENSION: &[Field] = &[
    optional(
        "messageExtension",
        Objects {
            count: 10,
            max: 81920,
        },
    ),
    required("messageExtension.name", Text { min: 1, max: 64 }),
    required("messageExtension.id", Text { min: 1, max: 64 }),
    required("messageExtension.criticalityIndicator", Boolean),
    required("messageExtension.data", AnyObject { max: 8192 }),
];

pub(super) const CREQ: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("acsTransID", Uuid),
    required(
        "challengeWindowSize",
        Codes(&["01", "02", "03", "04", "05"]),
    ),
];

/// The final `CRes`, which the browser posts. `challengeCompletionInd` is required in 2.1.0 only, but
/// many ACSs send it in later versions too.
pub(super) const CRES: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("acsTransID", Uuid),
    required("transStatus", Codes(&["Y", "N"])),
    required("challengeCompletionInd", Codes(&["Y"])).until(V2_1_0),
    optional("challengeCompletionInd", Codes(&["Y"])).since(V2_2_0),
];

/// `sdkTransID` is present on the app channel; the message does not contain the channel.
pub(super) const RRES: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("acsTransID", Uuid),
    required("dsTransID", Uuid),
    optional("sdkTransID", Uuid),
    required("resultsStatus", Codes(&["01", "02", "03"])),
];

pub(super) const ERRO: &[Field] = &[
    required("messageVersion", Version),
    required("errorCode", Digits { min: 3, max: 3 }),
    required("errorComponent", Codes(&["C", "S", "D", "A"])),
    required("errorDescription", Text { min: 1, max: 2048 }),
    required("errorDetail", Text { min: 1, max: 2048 }),
    optional("errorMessageType", Letters { min: 4, max: 4 }),
    optional("threeDSServerTransID", Uuid),
    optional("acsTransID", Uuid),
    optional("dsTransID", Uuid),
    optional("sdkTransID", Uuid),
];
