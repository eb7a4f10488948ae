// TLS 1.3 for QUIC: a server with the assignment's certificate, a client that verifies it.
#ifndef TLS_H
#define TLS_H

#include <gnutls/gnutls.h>

#include "contract.h"

// The keys and certificates of one end. Ends the program when they cannot be read.
gnutls_certificate_credentials_t read_credentials(const struct assignment *assignment);

// A session for one connection.
gnutls_session_t new_session(const struct assignment *assignment,
                             gnutls_certificate_credentials_t credentials);

// Why the client does not take the server's certificate; NULL where that is not what was wrong.
const char *certificate_problem(gnutls_session_t session);

#endif
