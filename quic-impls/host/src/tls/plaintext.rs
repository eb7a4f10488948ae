//! TLS of simulators: each message is as long as elsewhere, and none is secret. Nobody listens in virtual time, and cryptography
//! would be a fifth of what trials take.
//!
//! Packets are not encrypted. Their tags name the key and the number of the packet, so that another key refuses them as elsewhere. All
//! ends have one key share, and a signature is a mark. Files are read once in a process, and so is a certificate verified.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, SharedSecret, SupportedKxGroup, hmac,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::server::ServerSessionMemoryCache;
use rustls::sign::{Signer, SigningKey};
use rustls::{
    CertificateError, CipherSuiteCommon, ClientConfig, DigitallySignedStruct, Error, NamedGroup, ServerConfig,
    SignatureAlgorithm, SignatureScheme, SupportedCipherSuite, Tls13CipherSuite,
};

use crate::content;
use crate::surroundings::Calendar;

/// Sessions that an endpoint remembers. Those of one trial are unknown in the next.
const SESSIONS: usize = 8;

const TAG_LENGTH: usize = 16;

/// The bytes of a packet whose mask hides its header.
const SAMPLE_LENGTH: usize = 16;

/// Packets that AES-GCM encrypts with one key, and forged ones that it bears (RFC 9001, section 6.6).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// As long as a share and a secret of X25519.
const SHARE: [u8; 32] = [1; 32];
const SECRET: [u8; 32] = [2; 32];

/// As long as a signature by Ed25519.
const MARK: [u8; 64] = [3; 64];

/// A client that trusts an authority, without protocols of applications. An error is one line.
pub fn client(authority: &Path) -> Result<ClientConfig, String> {
    static CLIENTS: Mutex<BTreeMap<PathBuf, ClientConfig>> = Mutex::new(BTreeMap::new());
    let mut config = configuration(&CLIENTS, authority.to_owned(), || {
        let real = super::verifier(authority, super::provider())?;
        let verifier = Arc::new(Verifier { real, certificates: Mutex::default() });
        let builder = super::of_client(provider(), Calendar::Virtual);
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    })?;
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(config)
}

/// A server with a certificate and its key, without protocols of applications. An error is one line.
pub fn server(certificate: &Path, private_key: &Path) -> Result<ServerConfig, String> {
    static SERVERS: Mutex<BTreeMap<[PathBuf; 2], ServerConfig>> = Mutex::new(BTreeMap::new());
    let files = [certificate, private_key].map(Path::to_owned);
    let mut config =
        configuration(&SERVERS, files, || super::of_server(certificate, private_key, provider(), Calendar::Virtual))?;
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    Ok(config)
}

/// Returns a configuration that is made of files once.
fn configuration<K: Ord, C: Clone>(
    configurations: &Mutex<BTreeMap<K, C>>,
    files: K,
    make: impl FnOnce() -> Result<C, String>,
) -> Result<C, String> {
    let mut configurations = configurations.lock().expect("nobody panics with it");
    if let Some(config) = configurations.get(&files) {
        return Ok(config.clone());
    }
    let config = make()?;
    configurations.insert(files, config.clone());
    Ok(config)
}

/// Offers what ring's does, in the same order.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let make = || {
        let ring = rustls::crypto::ring::default_provider();
        let group = |group: &'static dyn SupportedKxGroup| match group.name() {
            NamedGroup::X25519 => &OneShare as &dyn SupportedKxGroup,
            _ => group,
        };
        Arc::new(CryptoProvider {
            cipher_suites: ring.cipher_suites.iter().filter_map(without_encryption).collect(),
            kx_groups: ring.kx_groups.iter().copied().map(group).collect(),
            secure_random: &NoChance,
            key_provider: &Marks,
            ..ring
        })
    };
    Arc::clone(PROVIDER.get_or_init(make))
}

fn without_encryption(suite: &SupportedCipherSuite) -> Option<SupportedCipherSuite> {
    let suite = suite.tls13()?;
    let Tls13CipherSuite { common, aead_alg, quic, .. } = suite;
    let lengths: &Lengths =
        Box::leak(Box::new(Lengths { key: (*quic)?.aead_key_len(), hash: common.hash_provider.output_len() }));
    let common = CipherSuiteCommon {
        suite: common.suite,
        hash_provider: common.hash_provider,
        confidentiality_limit: common.confidentiality_limit,
    };
    let plain = Tls13CipherSuite { common, hkdf_provider: lengths, aead_alg: *aead_alg, quic: Some(lengths) };
    Some(SupportedCipherSuite::Tls13(Box::leak(Box::new(plain))))
}

/// The cipher of packets, and the derivation of keys.
struct Lengths {
    key: usize,
    hash: usize,
}

impl Algorithm for Lengths {
    fn packet_key(&self, key: AeadKey, _iv: Iv) -> Box<dyn PacketKey> {
        Box::new(KeyName(*key.as_ref().first_chunk().expect("a key has 16 bytes or more")))
    }

    fn header_protection_key(&self, _key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(NoMask)
    }

    fn aead_key_len(&self) -> usize {
        self.key
    }
}

impl Hkdf for Lengths {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.extract_from_secret(salt, &[])
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Mixture { seed: mixed(&[salt.unwrap_or_default(), secret]), length: self.hash })
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Mixture { seed: mixed(&[okm.as_ref()]), length: self.hash })
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        let mut bytes = [0; OkmBlock::MAX_LEN];
        content::make(mixed(&[key.as_ref(), message]), 0, &mut bytes);
        hmac::Tag::new(&bytes[..self.hash])
    }
}

/// Whatever keys are derived from: they differ where their inputs do, and are no secret.
struct Mixture {
    seed: u64,
    /// The length of a hash.
    length: usize,
}

impl HkdfExpander for Mixture {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        content::make(self.seed ^ mixed(info), 0, output);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut bytes = [0; OkmBlock::MAX_LEN];
        content::make(self.seed ^ mixed(info), 0, &mut bytes);
        OkmBlock::new(&bytes[..self.length])
    }

    fn hash_len(&self) -> usize {
        self.length
    }
}

/// A number of these bytes, in their order.
fn mixed(parts: &[&[u8]]) -> u64 {
    parts.iter().flat_map(|part| part.chunks(8)).fold(0, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        content::word(sum ^ u64::from_le_bytes(word), chunk.len() as u64)
    })
}

struct NoMask;

impl HeaderProtectionKey for NoMask {
    fn encrypt_in_place(&self, _sample: &[u8], _first: &mut u8, _packet_number: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn decrypt_in_place(&self, _sample: &[u8], _first: &mut u8, _packet_number: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LENGTH
    }
}

/// The first bytes of a key. They name it well enough.
struct KeyName([u8; 4]);

impl KeyName {
    /// The tag of a packet.
    fn tag(&self, path: u32, number: u64) -> [u8; TAG_LENGTH] {
        let mut tag = [0; TAG_LENGTH];
        tag[..4].copy_from_slice(&self.0);
        tag[4..8].copy_from_slice(&path.to_le_bytes());
        tag[8..].copy_from_slice(&number.to_le_bytes());
        tag
    }
}

impl PacketKey for KeyName {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.encrypt_in_place_for_path(0, number, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        _header: &[u8],
        _payload: &mut [u8],
    ) -> Result<Tag, Error> {
        Ok(Tag::from(&self.tag(path, number)[..]))
    }

    fn decrypt_in_place<'a>(&self, number: u64, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        self.decrypt_in_place_for_path(0, number, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        _header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        match payload.split_last_chunk() {
            Some((content, tag)) if *tag == self.tag(path, number) => Ok(content),
            _ => Err(Error::DecryptError),
        }
    }

    fn tag_len(&self) -> usize {
        TAG_LENGTH
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// X25519, of which all ends have one share.
#[derive(Debug)]
struct OneShare;

impl SupportedKxGroup for OneShare {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(Self))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for OneShare {
    fn complete(self: Box<Self>, _peer: &[u8]) -> Result<SharedSecret, Error> {
        Ok(SharedSecret::from(&SECRET[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &SHARE
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// Randomness of TLS itself.
#[derive(Debug)]
struct NoChance;

impl SecureRandom for NoChance {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        buffer.fill(4);
        Ok(())
    }
}

/// Loads private keys that sign with a mark.
#[derive(Debug)]
struct Marks;

impl KeyProvider for Marks {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Ok(Arc::new(MarkingKey(super::provider().key_provider.load_private_key(key)?)))
    }
}

#[derive(Debug)]
struct MarkingKey(Arc<dyn SigningKey>);

impl SigningKey for MarkingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(Marker(self.0.choose_scheme(offered)?.scheme())))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct Marker(SignatureScheme);

impl Signer for Marker {
    fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(MARK.to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}

/// Verifies each certificate once.
#[derive(Debug)]
struct Verifier {
    real: Arc<WebPkiServerVerifier>,
    /// Certificates that were found good, and the names for which they were.
    certificates: Mutex<Vec<(CertificateDer<'static>, ServerName<'static>)>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut certificates = self.certificates.lock().expect("nobody panics with it");
        if !certificates.iter().any(|(certificate, name)| certificate == end_entity && name == server_name) {
            self.real.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
            certificates.push((end_entity.clone().into_owned(), server_name.to_owned()));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.real.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match signed.signature() == MARK {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.real.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    /// Returns the ciphers of packets whose keys have 32 bytes, of which one is negotiated.
    fn ciphers(provider: &CryptoProvider) -> Vec<&'static dyn Algorithm> {
        let suites = provider.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13);
        suites.filter_map(|suite| suite.quic).filter(|quic| quic.aead_key_len() == KEY.len()).collect()
    }

    fn key_of(cipher: &dyn Algorithm, key: [u8; 32]) -> Box<dyn PacketKey> {
        cipher.packet_key(AeadKey::from(key), Iv::from([0; 12]))
    }

    #[test]
    fn all_is_offered_that_ring_offers_and_as_long() {
        let (ours, rings) = (provider(), super::super::provider());
        let suites =
            |provider: &CryptoProvider| provider.cipher_suites.iter().map(|suite| suite.suite()).collect::<Vec<_>>();
        assert_eq!(suites(&ours), suites(&rings));
        let groups =
            |provider: &CryptoProvider| provider.kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>();
        assert_eq!(groups(&ours), groups(&rings));
        for provider in [&ours, &rings] {
            let exchange = provider.kx_groups[0].start().unwrap();
            let (share, group) = (exchange.pub_key().to_vec(), exchange.group());
            assert_eq!((share.len(), group), (32, NamedGroup::X25519));
            assert_eq!(exchange.complete(&share).unwrap().secret_bytes().len(), 32);
        }
        let measures = |provider: &CryptoProvider| {
            let (cipher, mut payload) = (ciphers(provider)[0], [5; 100]);
            let key = key_of(cipher, KEY);
            let tag = key.encrypt_in_place(1, b"header", &mut payload).unwrap();
            let sample = cipher.header_protection_key(AeadKey::from(KEY)).sample_len();
            let limits = (key.confidentiality_limit(), key.integrity_limit());
            (tag.as_ref().len(), key.tag_len(), sample, limits)
        };
        assert_eq!(measures(&ours), measures(&rings));
    }

    #[test]
    fn a_packet_is_refused_by_another_key_number_or_path() {
        for cipher in ciphers(&provider()) {
            let key = key_of(cipher, KEY);
            let mut payload = [5; 100];
            let tag = key.encrypt_in_place_for_path(1, 9, b"header", &mut payload).unwrap();
            let packet = [&payload[..], tag.as_ref()].concat();
            let open = |key: &dyn PacketKey, path, number| {
                let mut packet = packet.clone();
                key.decrypt_in_place_for_path(path, number, b"header", &mut packet).map(<[u8]>::to_vec)
            };
            assert_eq!(open(&*key, 1, 9).unwrap(), payload);
            assert!(open(&*key, 0, 9).is_err());
            assert!(open(&*key, 1, 10).is_err());
            assert!(open(&*key_of(cipher, [8; 32]), 1, 9).is_err());
        }
    }
}
