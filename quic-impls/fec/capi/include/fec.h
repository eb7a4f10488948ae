/* clang-format off */
/* SPDX-License-Identifier: Apache-2.0
 *
 * Erasure codes and the policy "safe" for a transport in C: bytes in, bytes out, no clock, no I/O.
 *
 * Each call returns a status, and refuses null and what is out of range. The caller sees to it that pointers
 * are valid, and that an encoder or decoder is used by one thread at a time, and not once it is freed. Different
 * ones are independent. A panic ends in FEC_STATUS_BROKEN if the library is built to unwind, as it comes; with
 * panic = "abort" it ends the process, as lack of memory does.
 *
 * Made by cbindgen of quic-impls/fec/capi: make header. */

#ifndef FEC_H
#define FEC_H

#include <stddef.h>
#include <stdint.h>

/*
 The longest symbol that an encoder or a decoder can be made for, in bytes.
 */
#define FEC_MAX_SYMBOL 65535

/*
 The most bytes that a repair payload has before its repair symbol.
 */
#define FEC_MAX_HEADER 13

/*
 Status of a call. Values below 0 are errors: fec_error() says which, and the encoder or decoder is as before.
 */
enum fec_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Done; the answer to a question is yes.
   */
  FEC_STATUS_OK = 0,
  /*
   The answer to a question is no: there is none, or no other one.
   */
  FEC_STATUS_NO = 1,
  /*
   An argument is null, out of its range, or contradicts another one: a fault of the program.
   */
  FEC_STATUS_ARGUMENT = -1,
  /*
   A buffer is too short.
   */
  FEC_STATUS_BUFFER = -2,
  /*
   The peer sent bytes that it must not send.
   */
  FEC_STATUS_MALFORMED = -3,
  /*
   A fault of the library. Free the encoder or decoder: it takes no more calls.
   */
  FEC_STATUS_BROKEN = -4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fec_status fec_status;
#else
typedef int32_t fec_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The code that makes repair symbols.
 */
enum fec_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Sums of all that is protected: each recovers one loss.
   */
  FEC_CODE_XOR = 1,
  /*
   Reed-Solomon, of at most 256 symbols.
   */
  FEC_CODE_REED_SOLOMON = 2,
  /*
   RLC of RFC 8681, without a coefficient that is 0.
   */
  FEC_CODE_RLC = 3,
  /*
   A Vandermonde matrix, much as in Tetrys (RFC 9407).
   */
  FEC_CODE_VANDERMONDE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fec_code fec_code;
#else
typedef uint32_t fec_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The possible use of the next packet.
 */
enum fec_slot
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Data waits to be sent.
   */
  FEC_SLOT_DATA = 1,
  /*
   No data waits.
   */
  FEC_SLOT_IDLE = 2,
  /*
   Nothing was heard for long: a packet is sent to provoke an answer.
   */
  FEC_SLOT_PROBE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fec_slot fec_slot;
#else
typedef uint32_t fec_slot;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A receiver's symbols.
 */
typedef struct fec_decoder fec_decoder;

/*
 A sender's symbols, and its policy.
 */
typedef struct fec_encoder fec_encoder;

/*
 The transport's state when it asks. Set all to 0 first: unknown values stay so. Only slot must be set; each number
 is below 2^60.
 */
typedef struct fec_context {
  /*
   The possible use of the next packet, a fec_slot.
   */
  uint32_t slot;
  /*
   No more data than this will come: 1, else 0.
   */
  uint8_t is_ending;
  /*
   Acknowledgements wait to be sent: 1, else 0.
   */
  uint8_t has_acks;
  /*
   Protection takes nothing from packets, and repair nothing from the congestion window and the pacer of data: 1, else 0.
   */
  uint8_t is_free;
  /*
   The time since the transport asked first.
   */
  uint64_t now_ns;
  /*
   Bytes of data that wait to be sent for the first time.
   */
  uint64_t unsent_bytes;
  /*
   The congestion window.
   */
  uint64_t window_bytes;
  /*
   Bytes that were sent, and neither acknowledged nor declared lost.
   */
  uint64_t in_flight_bytes;
  /*
   The smoothed round-trip time.
   */
  uint64_t smoothed_rtt_ns;
  /*
   The last round-trip time that was measured, or the smoothed one if that is longer.
   */
  uint64_t recent_rtt_ns;
  /*
   The least round-trip time that was measured.
   */
  uint64_t min_rtt_ns;
  /*
   Bytes per second that the path delivers, if congestion control measures that, as BBR does.
   */
  uint64_t delivers_bytes_per_s;
  /*
   Bytes per second that the path delivers by estimate: window_bytes for each smoothed_rtt_ns, if nothing better is
   known.
   */
  uint64_t rate_bytes_per_s;
  /*
   The size of a packet with a repair symbol, at most 131,070.
   */
  uint64_t packet_bytes;
  /*
   Packets that arrived so far, with or without source symbols.
   */
  uint64_t arrived;
  /*
   Packets that were lost so far.
   */
  uint64_t lost;
  /*
   Number of runs in which these were lost: packets that were sent one after the other count as one run.
   */
  uint64_t runs;
} fec_context;

/*
 SIDs from first to last, both included.
 */
typedef struct fec_range {
  /*
   The first.
   */
  uint64_t first;
  /*
   The last.
   */
  uint64_t last;
} fec_range;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Return why the last call of this thread that failed did so: one line, empty if none has failed. It is valid until the
 next call of this thread fails.
 */
const char *fec_error(void);

/*
 Make an encoder with the policy "safe": at the end of data, as many repair symbols over the last `length` source symbols
 (1 to 255) as the losses so far call for, where they delay nothing. Its repair symbols wait behind data and
 acknowledgements, and their acknowledgements grow no congestion window. A symbol has at most `symbol_size` bytes.
 */
fec_status fec_encoder_new_safe(struct fec_encoder **encoder,
                                uint32_t code,
                                size_t symbol_size,
                                size_t length);

/*
 Make an encoder that sends n − k repair symbols after each k source symbols, over the last `length` ones (k to 255).
 */
fec_status fec_encoder_new_constant(struct fec_encoder **encoder,
                                    uint32_t code,
                                    size_t symbol_size,
                                    size_t n,
                                    size_t k,
                                    size_t length);

/*
 Make an encoder of blocks: n − k repair symbols over each k source symbols. `interleave` blocks are filled in
 turn: each gets every `interleave`-th symbol.
 */
fec_status fec_encoder_new_block(struct fec_encoder **encoder,
                                 uint32_t code,
                                 size_t symbol_size,
                                 size_t n,
                                 size_t k,
                                 size_t interleave);

/*
 Free an encoder; null is none.
 */
void fec_encoder_free(struct fec_encoder *encoder);

/*
 Say over how many source symbols the receiver takes repair symbols: 0 until this is called, when there are none.
 */
fec_status fec_encoder_set_window(struct fec_encoder *encoder,
                                  size_t window);

/*
 Ask whether what is sent next is to be a source symbol.
 */
fec_status fec_encoder_protects(struct fec_encoder *encoder, const struct fec_context *context);

/*
 Take a copy of what is being sent, and number it: SIDs are 0, 1, 2, and so on. The receiver has to know the SID.
 */
fec_status fec_encoder_protect(struct fec_encoder *encoder,
                               const uint8_t *symbol,
                               size_t length,
                               uint64_t *sid);

/*
 The packet with this source symbol was acknowledged.
 */
fec_status fec_encoder_acked(struct fec_encoder *encoder, uint64_t sid);

/*
 The packet with this source symbol was declared lost.
 */
fec_status fec_encoder_lost(struct fec_encoder *encoder, uint64_t sid);

/*
 The receiver says that it recovered this source symbol.
 */
fec_status fec_encoder_recovered(struct fec_encoder *encoder, uint64_t sid);

/*
 A repair symbol arrived, or was declared lost. They are numbered 0, 1, 2, and so on, as fec_encoder_repair() makes them.
 */
fec_status fec_encoder_repair_settled(struct fec_encoder *encoder,
                                      uint64_t number);

/*
 Acknowledgements came, or packets were declared lost; each symbol's fate was told before.
 */
fec_status fec_encoder_feedback(struct fec_encoder *encoder, const struct fec_context *context);

/*
 Ask whether fec_encoder_repair() would make a repair symbol now.
 */
fec_status fec_encoder_wants_repair(struct fec_encoder *encoder, const struct fec_context *context);

/*
 Make the repair payload that is to be sent now: its bytes, and their number in `length`; FEC_STATUS_NO and 0 if there is
 none. The buffer takes `capacity` bytes, at least symbol_size + FEC_MAX_HEADER.
 */
fec_status fec_encoder_repair(struct fec_encoder *encoder,
                              const struct fec_context *context,
                              uint8_t *payload,
                              size_t capacity,
                              size_t *length);

/*
 Make a decoder that takes repair symbols over at most `window` source symbols (1 to 255), which is to be announced to the
 sender, and symbols of at most `symbol_size` bytes. It looks back over so many source symbols: 2 · window to 4096, or 0
 for the least. It keeps no more than as many symbols and equations.
 */
fec_status fec_decoder_new(struct fec_decoder **decoder,
                           uint32_t code,
                           size_t symbol_size,
                           size_t window,
                           size_t look_back);

/*
 Free a decoder; null is none.
 */
void fec_decoder_free(struct fec_decoder *decoder);

/*
 Take a source symbol that arrived. Then ask fec_decoder_recovered().
 */
fec_status fec_decoder_source(struct fec_decoder *decoder,
                              uint64_t sid,
                              const uint8_t *symbol,
                              size_t length);

/*
 Take a repair payload that arrived. Then ask fec_decoder_recovered().
 */
fec_status fec_decoder_repair(struct fec_decoder *decoder, const uint8_t *payload, size_t length);

/*
 Return the next source symbol that the last symbol or payload recovered; FEC_STATUS_NO after the last one. It has
 zeros at its end if it was shorter than others. It is valid until the next call with this decoder. Symbols that are
 not asked for are forgotten with the next symbol.
 */
fec_status fec_decoder_recovered(struct fec_decoder *decoder,
                                 uint64_t *sid,
                                 const uint8_t **symbol,
                                 size_t *length);

/*
 Return the symbols that were recovered and are still looked back at, the newest first: `capacity` ranges at most,
 and how many there are in `count`. The sender is to know them: fec_encoder_recovered().
 */
fec_status fec_decoder_acks(struct fec_decoder *decoder,
                            struct fec_range *ranges,
                            size_t capacity,
                            size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FEC_H */
