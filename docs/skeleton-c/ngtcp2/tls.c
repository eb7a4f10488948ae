#include "tls.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdlib.h>

static const char PRIORITY[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE";
static const gnutls_datum_t ALPN = {(unsigned char *)"hq-interop", 10};

// The types of tls.h are GnuTLS's own.
static gnutls_session_t own(struct session *session) {
    return (gnutls_session_t)session;
}

struct credentials *read_credentials(const struct assignment *assignment) {
    gnutls_certificate_credentials_t credentials;
    gnutls_certificate_allocate_credentials(&credentials);
    int result =
        assignment->is_server
            ? gnutls_certificate_set_x509_key_file(credentials, assignment->certificate,
                                                   assignment->private_key, GNUTLS_X509_FMT_PEM)
            : gnutls_certificate_set_x509_trust_file(credentials, assignment->authority, GNUTLS_X509_FMT_PEM);
    if (result < 0)
        fail(EXIT_FAILURE, "%s: %s", assignment->is_server ? assignment->certificate : assignment->authority,
             gnutls_strerror(result));
    return (struct credentials *)credentials;
}

struct session *new_session(const struct assignment *assignment, struct credentials *credentials,
                            void *reference) {
    gnutls_session_t session;
    gnutls_init(&session, (assignment->is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_TICKETS);
    gnutls_priority_set_direct(session, PRIORITY, NULL);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_session_set_ptr(session, reference);
    gnutls_alpn_set_protocols(session, &ALPN, 1, GNUTLS_ALPN_MANDATORY);
    int result = assignment->is_server ? ngtcp2_crypto_gnutls_configure_server_session(session)
                                       : ngtcp2_crypto_gnutls_configure_client_session(session);
    if (result != 0)
        fail(EXIT_FAILURE, "TLS cannot be set up for QUIC");
    if (!assignment->is_server) {
        const char *name = assignment->server_name;
        gnutls_server_name_set(session, GNUTLS_NAME_DNS, name, __builtin_strlen(name));
        gnutls_session_set_verify_cert(session, name, 0);
    }
    return (struct session *)session;
}

void free_session(struct session *session) {
    gnutls_deinit(own(session));
}

const char *certificate_problem(struct session *session) {
    gnutls_datum_t text;
    unsigned status = gnutls_session_get_verify_cert_status(own(session));
    if (status == 0 || status == (unsigned)-1 ||
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) != 0)
        return NULL;
    return (const char *)text.data;
}

struct hash *new_hash(void) {
    gnutls_hash_hd_t hash;
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) != 0)
        fail(EXIT_FAILURE, "there is no SHA-256");
    return (struct hash *)hash;
}

void hash_more(struct hash *hash, const uint8_t *data, size_t length) {
    gnutls_hash((gnutls_hash_hd_t)hash, data, length);
}

void end_hash(struct hash *hash, uint8_t result[HASH_BYTES]) {
    gnutls_hash_deinit((gnutls_hash_hd_t)hash, result);
}

void fill_randomly(uint8_t *bytes, size_t length) {
    gnutls_rnd(GNUTLS_RND_RANDOM, bytes, length);
}
