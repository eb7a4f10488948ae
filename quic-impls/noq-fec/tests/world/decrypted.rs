//! Hooks between QUIC and its encryption: for frames that an end decrypts, before QUIC sees them, and for frames that
//! it sends.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use host::contract::Role;
use noq_fec::settings;
use noq_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ClientConfig, ConnectError, ConnectionId, PathId, ServerConfig, Side, TransportError};

use super::{Outcome, Setting, World};

/// Frame types, as they are encoded.
pub const REPAIR: [u8; 4] = [0xb2, 0xa8, 0x0f, 0xec];
pub const SOURCE_SYMBOL: [u8; 8] = [0xc0, 0, 0, 0x32, 0xa8, 0x0f, 0xec, 0x55];
pub const PACKET_REPAIR: [u8; 2] = [0x4f, 0xec];

/// Sees, and may change, the frames of the n-th 1-RTT packet that an end receives.
pub type Change = Arc<Mutex<dyn FnMut(u64, &mut BytesMut) + Send>>;

/// Sees the frames of each 1-RTT packet that an end sends.
pub type Watch = Arc<Mutex<dyn FnMut(Sent) + Send>>;

/// A packet that is sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    pub path: PathId,
    /// Its number on the path.
    pub number: u64,
    pub frames: &'a [u8],
}

impl Sent<'_> {
    /// The number of its source symbol, if it is protected.
    pub fn source_symbol(&self) -> Option<u64> {
        let at = self.frames.windows(SOURCE_SYMBOL.len()).position(|window| window == SOURCE_SYMBOL)?;
        Some(varint(&self.frames[at + SOURCE_SYMBOL.len()..]).0)
    }

    /// The number of the first symbol that its repair symbol protects, and how many; which those are depends on the code's stride.
    pub fn repair(&self) -> Option<(u64, u64)> {
        let rest = self.frames.strip_prefix(&REPAIR)?;
        let (first, rest) = varint(rest);
        Some((first, varint(rest).0))
    }
}

/// A variable-length integer (RFC 9000, section 16), and what is behind it.
fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let (integer, rest) = bytes.split_at(1 << (bytes[0] >> 6));
    let first = u64::from(integer[0] & 0x3f);
    (integer[1..].iter().fold(first, |value, byte| value << 8 | u64::from(*byte)), rest)
}

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many bytes of frames ends with hooks have received on this thread, as they were changed.
pub fn bytes() -> u64 {
    BYTES.get()
}

/// Hooks that change the 1-RTT packets that an end decrypts, and watch those that it encrypts.
#[derive(Clone)]
struct Hooks {
    change: Change,
    watch: Watch,
    /// Packets that were received.
    count: Arc<Mutex<u64>>,
}

impl Hooks {
    fn new(change: Change, watch: Watch) -> Self {
        Self { change, watch, count: Arc::default() }
    }

    fn around(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let hooked = |inner| Box::new(HookedKey { inner, hooks: self.clone() });
        KeyPair { local: hooked(keys.local), remote: hooked(keys.remote) }
    }
}

/// A TLS configuration or session with hooks at its 1-RTT packets.
struct Hooked<T> {
    inner: T,
    hooks: Hooks,
    /// Key changes so far: the first is to the keys of the handshake.
    keys: u64,
}

struct HookedKey {
    inner: Box<dyn PacketKey>,
    hooks: Hooks,
}

impl PacketKey for HookedKey {
    fn encrypt(&self, path: PathId, number: u64, buf: &mut [u8], header_len: usize) {
        let frames = &buf[header_len..buf.len() - self.tag_len()];
        (self.hooks.watch.lock().unwrap())(Sent { path, number, frames });
        self.inner.encrypt(path, number, buf, header_len);
    }

    fn decrypt(&self, path_id: PathId, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(path_id, packet, header, payload)?;
        let mut count = self.hooks.count.lock().unwrap();
        (self.hooks.change.lock().unwrap())(*count, payload);
        BYTES.set(BYTES.get() + payload.len() as u64);
        *count += 1;
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

impl Session for Hooked<Box<dyn Session>> {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let mut keys = self.inner.write_handshake(buf)?;
        self.keys += 1;
        if self.keys == 2 {
            keys.packet = self.hooks.around(keys.packet);
        }
        Some(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys().map(|keys| self.hooks.around(keys))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

impl<T: crypto::ClientConfig> crypto::ClientConfig for Hooked<T> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.start_session(version, server_name, params)?;
        Ok(Box::new(Hooked { inner, hooks: self.hooks.clone(), keys: 0 }))
    }
}

impl<T: crypto::ServerConfig> crypto::ServerConfig for Hooked<T> {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let inner = self.inner.start_session(version, params);
        Box::new(Hooked { inner, hooks: self.hooks.clone(), keys: 0 })
    }
}

/// A transfer one end of which receives what `change` makes of its packets.
pub fn changed(setting: &Setting, receiver: Role, change: Change) -> Outcome {
    let (client, server) = configs(setting, receiver, change);
    World::of_transfer(setting, client, server).run()
}

/// A transfer of which `watch` sees what one end sends.
pub fn watched(setting: &Setting, sender: Role, watch: Watch) -> Outcome {
    let (client, server) = watched_configs(setting, sender, watch);
    World::of_transfer(setting, client, server).run()
}

/// The ends of a connection of which `watch` sees what one sends.
pub fn watched_configs(setting: &Setting, sender: Role, watch: Watch) -> (ClientConfig, ServerConfig) {
    hooked(setting, sender, Hooks::new(Arc::new(Mutex::new(|_, _: &mut BytesMut| {})), watch))
}

/// The ends of a connection one of which receives what `change` makes of its packets.
pub fn configs(setting: &Setting, receiver: Role, change: Change) -> (ClientConfig, ServerConfig) {
    hooked(setting, receiver, Hooks::new(change, Arc::new(Mutex::new(|_: Sent| {}))))
}

fn hooked(setting: &Setting, end: Role, hooks: Hooks) -> (ClientConfig, ServerConfig) {
    let (mut client, mut server) = (setting.client_config(), setting.server_config());
    match end {
        Role::Client => {
            let assignment = setting.assignment(Role::Client, &setting.client);
            let inner = settings::client_tls(&assignment, &setting.surroundings(Role::Client)).unwrap();
            client = ClientConfig::new(Arc::new(Hooked { inner, hooks, keys: 0 }));
            client.transport_config(Arc::new(setting.transport(Role::Client, &setting.client)));
        }
        Role::Server => {
            let assignment = setting.assignment(Role::Server, &setting.server);
            let inner = settings::server_tls(&assignment, &setting.surroundings(Role::Server)).unwrap();
            server = ServerConfig::with_crypto(Arc::new(Hooked { inner, hooks, keys: 0 }));
            server.transport_config(Arc::new(setting.transport(Role::Server, &setting.server)));
        }
    }
    (client, server)
}
