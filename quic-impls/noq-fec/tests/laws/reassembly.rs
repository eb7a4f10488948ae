//! Streams are put together of recovered frames as of received ones, whatever these are.

use crate::world::reassembly;
use host::content;

#[test]
fn the_corpus_is_reassembled_as_if_it_were_received() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/reassembly");
    let scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty(), "{folder} is empty");
    for script in scripts {
        let name = script.file_name().unwrap().to_str().unwrap();
        let heard = reassembly::recovered_as_received(&std::fs::read(&script).unwrap()).expect("a script");
        let read: usize = heard.streams.values().map(|stream| stream.read.len()).sum();
        println!("{name}: {read} bytes were read, and {:?}", heard.end);
        // RFC 9000, section 4.5.
        if name.contains("end-before") {
            let end = heard.end.expect("why it ended");
            assert!(end.contains("different final size"), "{name}: {end}");
        }
    }
}

#[test]
fn whatever_is_recovered_is_reassembled_as_if_it_were_received() {
    let cases = std::env::var("FUZZ_CASES").map_or(300, |cases| cases.parse().expect("FUZZ_CASES is a number"));
    for seed in 0..cases {
        let mut script = vec![0; (content::word(seed, 0) % 200) as usize];
        content::fill(seed, 8, &mut script);
        // Lower offsets of fewer streams, of which there is more to put together.
        for step in script.iter_mut().skip(1).collect::<Vec<_>>().chunks_exact_mut(4).filter(|_| seed % 2 == 0) {
            *step[0] |= 1;
            *step[1] %= 4;
            *step[2] %= 64;
        }
        reassembly::recovered_as_received(&script);
    }
}
