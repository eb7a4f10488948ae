#include "contract.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LARGEST_BYTES = 1ull << 40;

void fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(code);
}

static char *text_of(const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail(EXIT_WRONG_CALL, "%s: %s", path, strerror(errno));
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    return text;
}

static const cJSON *member(const cJSON *object, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    if (found == NULL)
        fail(EXIT_WRONG_CALL, "%s is missing in the assignment", name);
    return found;
}

static const char *string(const cJSON *object, const char *name) {
    const char *value = cJSON_GetStringValue(member(object, name));
    if (value == NULL)
        fail(EXIT_WRONG_CALL, "%s must be text", name);
    return value;
}

static double number(const cJSON *object, const char *name) {
    const cJSON *value = member(object, name);
    if (!cJSON_IsNumber(value) || value->valuedouble < 0)
        fail(EXIT_WRONG_CALL, "%s must be a number from 0 on", name);
    return value->valuedouble;
}

struct assignment read_assignment(const char *path) {
    const cJSON *document = cJSON_Parse(text_of(path));
    if (document == NULL)
        fail(EXIT_WRONG_CALL, "%s: is no JSON", path);
    const cJSON *workload = member(document, "workload");
    const char *name = string(workload, "name");
    bool is_asked_later = strcmp(name, "requests") == 0;
    if (!is_asked_later && strcmp(name, "download") != 0 && strcmp(name, "upload") != 0)
        fail(EXIT_UNSUPPORTED, "the workload \"%s\" is not supported", name);
    struct assignment assignment = {
        .is_server = strcmp(string(document, "role"), "server") == 0,
        .is_upload = strcmp(name, "upload") == 0,
        .is_asked_later = is_asked_later,
        .address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(document, "port"))},
        .server_name = string(document, "server_name"),
        .size_bytes = is_asked_later ? 0 : (uint64_t)number(workload, "size_bytes"),
        .content_seed = strtoull(string(document, "content_seed_hex"), NULL, 16),
        .congestion_control = string(member(document, "options"), "congestion_control"),
        .authority = string(document, "authority"),
        .deadline_s = number(document, "deadline_s"),
    };
    if (inet_pton(AF_INET, string(document, "address"), &assignment.address.sin_addr) != 1)
        fail(EXIT_WRONG_CALL, "address must be one of IPv4");
    if (assignment.is_server) {
        assignment.certificate = string(document, "certificate");
        assignment.private_key = string(document, "private_key");
    }
    return assignment;
}

const char *next_qlog(const struct assignment *assignment) {
    static char path[4096];
    static int connections;
    const char *folder = getenv("QLOGDIR");
    if (folder == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/%s-%d.sqlog", folder, assignment->is_server ? "server" : "client",
             connections++);
    return path;
}

void say_ready(void) {
    puts("{\"event\": \"ready\"}");
    fflush(stdout);
}

void say_object(uint64_t size_bytes, const uint64_t times[3]) {
    printf("{\"event\": \"object\", \"bytes\": %" PRIu64, size_bytes);
    const char *NAMES[] = {"requested_at", "first_byte_at", "done_at"};
    for (int i = 0; i < 3; i++)
        printf(", \"%s\": %" PRIu64 ".%09" PRIu64, NAMES[i], times[i] / 1000000000, times[i] % 1000000000);
    puts("}");
    fflush(stdout);
}

uint64_t read_request(const char *line) {
    const cJSON *document = cJSON_Parse(line), *get = cJSON_GetObjectItemCaseSensitive(document, "get");
    if (cJSON_HasObjectItem(document, "tell_every_s") || cJSON_HasObjectItem(document, "stop"))
        fail(EXIT_UNSUPPORTED, "standard input: to watch a download and give it up is not supported");
    if (cJSON_GetArraySize(document) != 1 || !cJSON_IsNumber(get) || get->valuedouble < 0 ||
        get->valuedouble > LARGEST_BYTES)
        fail(EXIT_FAILURE, "standard input: \"%s\" is not {\"get\": BYTES}", line);
    return (uint64_t)get->valuedouble;
}

void say_done(const struct metric *metrics, int count) {
    printf("{\"event\": \"done\", \"metrics\": {");
    for (int i = 0; i < count; i++)
        printf("%s\"%s\": %.9f", i ? ", " : "", metrics[i].name, metrics[i].value);
    puts("}}");
    fflush(stdout);
}
