//! A viewer that shares no line with moq: the client of moq-tokio, over moq-dev's QUIC. It writes the bytes of each track into a
//! file of the track's name, frame after frame, and ends when all tracks have.
//!
//!     moq-foreign URL AUTHORITY.pem SERVER_NAME FOLDER TRACK…

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use moq_net::{origin, track};
use url::Url;

const PATIENCE: Duration = Duration::from_secs(30);
const VERSION: &str = "moq-lite-06";

/// Frames by the numbers of their group and their place in it.
type Frames = BTreeMap<(u64, u64), Vec<u8>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, authority, name, folder, tracks @ ..] = &arguments[..] else {
        eprintln!("usage: moq-foreign URL AUTHORITY.pem SERVER_NAME FOLDER TRACK...");
        return ExitCode::from(2);
    };
    let viewing = view(url, authority, name, Path::new(folder), tracks);
    let ended = tokio::time::timeout(PATIENCE, viewing).await;
    match ended.unwrap_or_else(|_| Err(format!("not all tracks ended within {PATIENCE:?}").into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("moq-foreign: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn view(url: &str, authority: &str, name: &str, folder: &Path, tracks: &[String]) -> Result<(), Box<dyn Error>> {
    let mut config = moq_tokio::connect::Config::default();
    config.tls.root = vec![authority.into()];
    config.tls.system_roots = Some(false);
    config.tls.host_name = Some(name.to_string());
    config.version = vec![VERSION.parse()?];
    config.once = Some(true);
    let client = config.init(Default::default())?;
    let origin = moq_tokio::origin::spawn();
    let connection = client.with_subscriber(origin.clone()).connect(Url::parse(url)?);
    let connection = connection.established().await?;
    for (track, frames) in tracks.iter().zip(receive(&origin, tracks).await?) {
        std::fs::write(folder.join(track), frames.into_values().flatten().collect::<Vec<u8>>())?;
    }
    connection.close().await?;
    Ok(())
}

async fn receive(origin: &origin::Producer, tracks: &[String]) -> Result<Vec<Frames>, Box<dyn Error>> {
    let consumer = origin.consume();
    let mut announced = consumer.announced();
    let path = loop {
        let update = announced.next().await.ok_or("nothing was announced")?;
        if update.kind.is_active() {
            break update.prefix;
        }
    };
    let broadcast = consumer.request_broadcast(&path).await?;
    let mut readers = Vec::new();
    for track in tracks {
        let wanted = track::Subscription::default().with_max_age(PATIENCE);
        let track = broadcast.track(track)?.subscribe(wanted).await?;
        readers.push(tokio::spawn(read(track)));
    }
    let mut all = Vec::new();
    for reader in readers {
        all.push(reader.await??);
    }
    Ok(all)
}

async fn read(mut track: track::Subscriber) -> Result<Frames, moq_net::Error> {
    let mut frames = Frames::new();
    while let Some(mut group) = track.recv_group().await? {
        let mut index = 0;
        while let Some(frame) = group.read_frame().await? {
            frames.insert((group.sequence, index), frame.payload.to_vec());
            index += 1;
        }
    }
    Ok(frames)
}
