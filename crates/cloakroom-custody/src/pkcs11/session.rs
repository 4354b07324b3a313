//! A session with a PKCS#11 token, opened when it is needed and again when it is lost.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cloakroom_crypto::{Sensitive, random_bytes};
use cloakroom_platform::config;
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;

use crate::{Failure, Weakness, secret_file};

const NONCE_BYTES: usize = 12;
const TAG_BITS: u64 = 128;
const KEY_BYTES: u64 = 32;

/// Initialized modules, by path. PKCS#11 initializes a module once per process, and closing it would close the sessions
/// of another root key.
static MODULES: Mutex<Option<HashMap<PathBuf, Pkcs11>>> = Mutex::new(None);

#[derive(Clone)]
pub(super) struct Settings {
    module: PathBuf,
    token: String,
    key: String,
    pin_file: PathBuf,
}

impl Settings {
    pub(super) fn new(config: &config::RootKey) -> Result<Self, Failure> {
        let missing = |setting| Failure::Configuration(format!("root_key.{setting} is not set"));
        let text = |value: &Option<String>, setting| value.clone().ok_or_else(|| missing(setting));
        let path = |value: &Option<PathBuf>, setting| value.clone().ok_or_else(|| missing(setting));
        Ok(Self {
            module: path(&config.pkcs11_module, "pkcs11_module")?,
            token: text(&config.pkcs11_token, "pkcs11_token")?,
            key: text(&config.pkcs11_key, "pkcs11_key")?,
            pin_file: path(&config.pkcs11_pin_file, "pkcs11_pin_file")?,
        })
    }

    pub(super) fn root_name(&self) -> String {
        format!("{}/{}", self.token, self.key)
    }

    /// The attributes by which the root key is found.
    fn template(&self) -> [Attribute; 3] {
        [
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::AES),
            Attribute::Label(self.key.as_bytes().to_vec()),
        ]
    }
}

pub(super) struct TokenSession {
    settings: Settings,
    open: Option<(Session, ObjectHandle)>,
    /// A PIN that the token rejected. It is not sent again: a few rejections lock the token.
    rejected_pin: Option<Sensitive<String>>,
}

impl TokenSession {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            open: None,
            rejected_pin: None,
        }
    }

    /// Returns nonce, ciphertext and tag.
    pub(super) fn encrypt(
        &mut self,
        raw: &Sensitive<Vec<u8>>,
        aad: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        self.with_key(|session, key| {
            let mut nonce: [u8; NONCE_BYTES] = random_bytes();
            let parameters = GcmParams::new(&mut nonce, aad, TAG_BITS.into())?;
            let sealed = session.encrypt(&Mechanism::AesGcm(parameters), key, raw.expose())?;
            Ok([&nonce[..], &sealed].concat())
        })
    }

    pub(super) fn decrypt(
        &mut self,
        ciphertext: &[u8],
        aad: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Failure> {
        match self.try_decrypt(ciphertext, aad) {
            // Some modules (SoftHSM2) report a wrong tag as a general error. A token that decrypts its own probe, but
            // not this ciphertext, is in order.
            Err(Failure::Unavailable(_)) if self.decrypts_a_probe() => {
                match self.try_decrypt(ciphertext, aad) {
                    Err(Failure::Unavailable(_)) => Err(Failure::Integrity),
                    result => result,
                }
            }
            result => result,
        }
    }

    fn decrypts_a_probe(&mut self) -> bool {
        let probe = Sensitive::new(vec![0; 32]);
        let sealed = self.encrypt(&probe, b"probe");
        sealed.is_ok_and(|sealed| self.try_decrypt(&sealed, b"probe").is_ok())
    }

    fn try_decrypt(
        &mut self,
        ciphertext: &[u8],
        aad: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Failure> {
        let (nonce, sealed) = ciphertext
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(Failure::Integrity)?;
        self.with_key(|session, key| {
            let mut nonce = *nonce;
            let parameters = GcmParams::new(&mut nonce, aad, TAG_BITS.into())?;
            let raw = session.decrypt(&Mechanism::AesGcm(parameters), key, sealed)?;
            Ok(Sensitive::new(raw))
        })
    }

    /// Attributes that let the key leave the token, or that it has not always had.
    pub(super) fn weaknesses(&mut self) -> Result<Vec<Weakness>, Failure> {
        let name = self.settings.root_name();
        let attributes = self.with_key(|session, key| {
            let types = [
                AttributeType::Extractable,
                AttributeType::Sensitive,
                AttributeType::NeverExtractable,
            ];
            session.get_attributes(key, &types)
        })?;
        let weakness = |attribute: &Attribute| {
            let what = match attribute {
                Attribute::Extractable(true) => "can be extracted from the token",
                Attribute::Sensitive(false) => "can be read from the token in clear",
                Attribute::NeverExtractable(false) => {
                    "was extractable once or imported: copies of it may exist"
                }
                _ => return None,
            };
            let remedy = "create another with `cloakroom root-key create`";
            Some(Weakness(format!("the key {name} {what}; {remedy}")))
        };
        Ok(attributes.iter().filter_map(weakness).collect())
    }

    /// Runs a call with the root key. A session that was lost is opened again once.
    fn with_key<T>(
        &mut self,
        call: impl Fn(&Session, ObjectHandle) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let was_open = self.open.is_some();
        match self.try_with_key(&call) {
            Err(Failure::Unavailable(_)) if was_open => self.try_with_key(&call),
            result => result,
        }
    }

    fn try_with_key<T>(
        &mut self,
        call: impl Fn(&Session, ObjectHandle) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.log_in()?,
        };
        let result = call(&open.0, open.1).map_err(|error| classify(&error));
        // After any other failure the session or the handle may be invalid.
        if matches!(result, Ok(_) | Err(Failure::Integrity)) {
            self.open = Some(open);
        }
        result
    }

    fn log_in(&mut self) -> Result<(Session, ObjectHandle), Failure> {
        let pin = secret_file::read_only(&self.settings.pin_file)?;
        if let Some(rejected) = &self.rejected_pin
            && rejected.expose() == pin.expose()
        {
            return Err(Failure::Denied(WRONG_PIN));
        }
        let (module, slot) = find_token(&self.settings.module, &self.settings.token)?;
        let session = module
            .open_ro_session(slot)
            .map_err(|error| classify(&error))?;
        if let Err(failure) = log_in(&session, &pin) {
            if failure == Failure::Denied(WRONG_PIN) {
                self.rejected_pin = Some(pin);
            }
            return Err(failure);
        }
        self.rejected_pin = None;
        let keys = session
            .find_objects(&self.settings.template())
            .map_err(|error| classify(&error))?;
        match keys[..] {
            [key] => Ok((session, key)),
            [] => Err(Failure::Disabled("the token has no key with this label")),
            _ => Err(Failure::Configuration(
                "root_key.pkcs11_key: several keys have this label".to_owned(),
            )),
        }
    }
}

/// Generates an AES-256 key in the token that can never leave it. Never replaces a key with the same label.
pub fn create_key(config: &config::RootKey) -> Result<String, Failure> {
    let settings = Settings::new(config)?;
    let pin = secret_file::read_only(&settings.pin_file)?;
    let (module, slot) = find_token(&settings.module, &settings.token)?;
    let session = module
        .open_rw_session(slot)
        .map_err(|error| classify(&error))?;
    log_in(&session, &pin)?;
    let existing = session
        .find_objects(&settings.template())
        .map_err(|error| classify(&error))?;
    if !existing.is_empty() {
        let name = settings.root_name();
        return Err(Failure::Configuration(format!("{name} exists already")));
    }
    let template = [
        Attribute::Token(true),
        Attribute::Private(true),
        Attribute::Sensitive(true),
        Attribute::Extractable(false),
        Attribute::Modifiable(false),
        Attribute::Encrypt(true),
        Attribute::Decrypt(true),
        Attribute::Wrap(false),
        Attribute::Unwrap(false),
        Attribute::ValueLen(KEY_BYTES.into()),
        Attribute::Label(settings.key.as_bytes().to_vec()),
    ];
    session
        .generate_key(&Mechanism::AesKeyGen, &template)
        .map_err(|error| classify(&error))?;
    Ok(settings.root_name())
}

const WRONG_PIN: &str = "the PIN is wrong; it is not sent again until the PIN file changes";

fn log_in(session: &Session, pin: &Sensitive<String>) -> Result<(), Failure> {
    let pin = AuthPin::from(pin.expose().clone());
    match session.login(UserType::User, Some(&pin)) {
        // The login is one of the process, and another session has made it.
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
        Err(error) => Err(classify(&error)),
    }
}

fn find_token(path: &Path, label: &str) -> Result<(Pkcs11, Slot), Failure> {
    let module = load_module(path)?;
    let slots = module
        .get_slots_with_token()
        .map_err(|error| classify(&error))?;
    let has_label = |slot: &Slot| {
        let info = module.get_token_info(*slot);
        info.is_ok_and(|info| info.label().trim_end() == label)
    };
    let slot = slots.into_iter().find(has_label);
    let slot = slot.ok_or(Failure::Unavailable("no token with this label is present"))?;
    Ok((module, slot))
}

/// Loads and initializes a module, once per process.
fn load_module(path: &Path) -> Result<Pkcs11, Failure> {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = modules.get_or_insert_default();
    if let Some(module) = modules.get(path) {
        return Ok(module.clone());
    }
    let module = Pkcs11::new(path).map_err(|_| {
        let path = path.display();
        Failure::Configuration(format!("{path} cannot be loaded as a PKCS#11 module"))
    })?;
    let arguments = CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK);
    match module.initialize(arguments) {
        Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
        Err(error) => return Err(classify(&error)),
    }
    modules.insert(path.to_owned(), module.clone());
    Ok(module)
}

/// What a PKCS#11 error means for the root key.
fn classify(error: &Error) -> Failure {
    let Error::Pkcs11(value, _) = error else {
        return Failure::Unavailable("the PKCS#11 module misbehaves");
    };
    match value {
        RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange => {
            Failure::Denied(WRONG_PIN)
        }
        RvError::PinLocked => Failure::Denied("the PIN is locked"),
        RvError::PinExpired => Failure::Denied("the PIN has expired"),
        RvError::UserPinNotInitialized => Failure::Denied("the token has no user PIN"),
        RvError::KeyFunctionNotPermitted => {
            Failure::Disabled("the key may not encrypt and decrypt")
        }
        RvError::EncryptedDataInvalid | RvError::EncryptedDataLenRange => Failure::Integrity,
        RvError::TokenNotPresent | RvError::DeviceRemoved => {
            Failure::Unavailable("the token is not present")
        }
        RvError::MechanismInvalid => {
            Failure::Configuration("the PKCS#11 module does not support AES-GCM".to_owned())
        }
        _ => Failure::Unavailable("the PKCS#11 module reports an error"),
    }
}
