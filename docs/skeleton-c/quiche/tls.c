#include "tls.h"

#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdlib.h>

static const uint8_t ALPN[] = "\x0ahq-interop";
enum { ALPN_BYTES = sizeof ALPN - 1 };

struct hash {
    SHA256_CTX context;
};

// The other types of tls.h are BoringSSL's own.
static SSL *own(struct session *session) {
    return (SSL *)session;
}

// The server takes what it speaks itself of what the client offers.
static int choose_protocol(SSL *session, const uint8_t **chosen, uint8_t *length, const uint8_t *offered,
                           unsigned offered_length, void *unused) {
    (void)session, (void)unused;
    int result = SSL_select_next_proto((uint8_t **)chosen, length, offered, offered_length, ALPN, ALPN_BYTES);
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct credentials *read_credentials(const struct assignment *assignment) {
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    bool is_read;
    if (assignment->is_server) {
        is_read = SSL_CTX_use_certificate_chain_file(context, assignment->certificate) == 1 &&
                  SSL_CTX_use_PrivateKey_file(context, assignment->private_key, SSL_FILETYPE_PEM) == 1;
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    } else {
        is_read = SSL_CTX_load_verify_locations(context, assignment->authority, NULL) == 1;
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    if (!is_read)
        fail(EXIT_FAILURE, "%s cannot be read",
             assignment->is_server ? assignment->certificate : assignment->authority);
    return (struct credentials *)context;
}

struct session *new_session(const struct assignment *assignment, struct credentials *credentials,
                            void *reference) {
    (void)reference; // quiche finds its connection itself
    SSL *session = SSL_new((SSL_CTX *)credentials);
    bool is_ready = session != NULL;
    if (is_ready && !assignment->is_server)
        is_ready = SSL_set_alpn_protos(session, ALPN, ALPN_BYTES) == 0 &&
                   SSL_set_tlsext_host_name(session, assignment->server_name) == 1 &&
                   SSL_set1_host(session, assignment->server_name) == 1;
    if (!is_ready)
        fail(EXIT_FAILURE, "TLS cannot be set up for QUIC");
    return (struct session *)session;
}

const char *certificate_problem(struct session *session) {
    long result = SSL_get_verify_result(own(session));
    return result == X509_V_OK || result == X509_V_ERR_INVALID_CALL ? NULL
                                                                    : X509_verify_cert_error_string(result);
}

struct hash *new_hash(void) {
    struct hash *hash = malloc(sizeof *hash);
    if (hash == NULL)
        fail(EXIT_FAILURE, "there is no memory for a hash");
    SHA256_Init(&hash->context);
    return hash;
}

void hash_more(struct hash *hash, const uint8_t *data, size_t length) {
    SHA256_Update(&hash->context, data, length);
}

void end_hash(struct hash *hash, uint8_t result[HASH_BYTES]) {
    if (result != NULL)
        SHA256_Final(result, &hash->context);
    free(hash);
}

void fill_randomly(uint8_t *bytes, size_t length) {
    RAND_bytes(bytes, length);
}
