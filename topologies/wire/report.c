#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "system.h"
#include "version.h"
#include "written.h"

static const char *json_bool(bool value) {
    return value ? "true" : "false";
}

static void print_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f) // bytes outside ASCII are shown, not decoded
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_command(int argc, char **argv) {
    printf("\"command\":[");
    for (int i = 0; i < argc; i++) {
        if (i)
            putchar(',');
        print_string(argv[i]);
    }
    printf("],");
}

static void print_settings(const char *direction, const struct written *written) {
    const struct direction_settings *settings = &written->settings;
    printf("\"%s\":{", direction);
    written_print(written, stdout);
    if (settings->schedule.count)
        printf("\"schedule\":{\"steps\":%" PRIu64 ",\"repeat\":\"%s\",\"offset_ns\":%" PRIu64 "},",
               settings->schedule.count, WRITTEN_REPEATS[settings->schedule.repeat],
               settings->schedule.offset_ns);
    if (settings->jitter.law)
        printf("\"jitter\":{\"law\":\"%s\",\"mean_ns\":%" PRIu64 ",\"seed\":%" PRIu64 "},",
               WRITTEN_LAWS[settings->jitter.law], settings->jitter.mean_ns, settings->jitter.seed);
    printf("\"queue\":\"%s\"},", WRITTEN_QUEUES[settings->queue]);
}

static void print_configuration(const struct options *options) {
    printf("\"configuration\":{");
    print_settings("up", &options->up);
    print_settings("down", &options->down);
    printf("\"mtu\":%u,\"late_bound_us\":%" PRIu64 "},", options->mtu, options->late_bound_us);
}

static void print_scheduling(const struct scheduling *scheduling) {
    printf("\"scheduling\":{\"fifo\":%s,\"memory_locked\":%s}", json_bool(scheduling->fifo),
           json_bool(scheduling->memory_locked));
}

static void print_microseconds(const char *name, const struct lateness *lateness) {
    printf("\"%s\":{\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f},", name,
           (double)lateness_quantile(lateness, 0.5) / 1e3, (double)lateness_quantile(lateness, 0.99) / 1e3,
           (double)lateness_quantile(lateness, 0.999) / 1e3, (double)lateness->max_ns / 1e3);
}

static void print_direction(const char *name, const struct direction_report *report) {
    const struct direction *direction = report->direction;
    bool conserved = direction_conserves(direction) && !report->write_errors && !report->kernel_dropped;
    printf("\"%s\":{", name);
    printf("\"frames_in\":%" PRIu64 ",\"bytes_in\":%" PRIu64 ",", direction->frames_in, direction->bytes_in);
    if (report->first_ns == NEVER)
        printf("\"first_in_ns\":null,");
    else
        printf("\"first_in_ns\":%" PRIu64 ",", report->first_ns);
    printf("\"queue_dropped\":%" PRIu64 ",\"oversize_dropped\":%" PRIu64 ",", direction->queue_dropped,
           direction->oversize_dropped);
    printf("\"outage_dropped\":%" PRIu64 ",", direction->outage_dropped);
    for (const struct direction_counter *counter = DIRECTION_COUNTERS; counter->name; counter++)
        printf("\"%s\":%" PRIu64 ",", counter->name, counter->count(direction));
    printf("\"frames_out\":%" PRIu64 ",\"bytes_out\":%" PRIu64 ",", direction->frames_out,
           direction->bytes_out);
    printf("\"in_flight\":%" PRIu64 ",", direction_in_flight(direction));
    printf("\"max_queue_bytes\":%" PRIu64 ",\"max_queue_packets\":%" PRIu64 ",", direction->max_queue_bytes,
           direction->max_queue_packets);
    printf("\"write_errors\":%" PRIu64 ",\"kernel_dropped\":%" PRIu64 ",", report->write_errors,
           report->kernel_dropped);
    print_microseconds("lateness_us", report->lateness);
    print_microseconds("read_lag_us", report->read_lag);
    if (direction->settings.schedule.count)
        printf("\"schedule_late_ns\":{\"mean\":%" PRIu64 ",\"max\":%" PRIu64 "},",
               lateness_mean(report->schedule_late), report->schedule_late->max_ns);
    printf("\"late\":%" PRIu64 ",\"late_sum_us\":%.3f,\"conserved\":%s}", report->late,
           (double)report->late_sum_ns / 1e3, json_bool(conserved));
}

static void end_line(void) {
    putchar('\n');
    if (fflush(stdout))
        die(EXIT_FAILED, "cannot write to standard output");
}

void report_ready(const struct options *options, const struct scheduling *scheduling) {
    printf("{\"event\":\"ready\",\"version\":\"" WIRE_VERSION
           "\",\"near_interface\":\"%s\",\"far_interface\":\"%s\",",
           options->near.interface, options->far.interface);
    print_scheduling(scheduling);
    putchar('}');
    end_line();
}

void report_started(void) {
    printf("{\"event\":\"started\"}");
    end_line();
}

void report_link(const struct report *report) {
    printf("{\"event\":\"report\",\"version\":\"" WIRE_VERSION "\",");
    print_command(report->argc, report->argv);
    print_configuration(report->options);
    print_scheduling(&report->scheduling);
    printf(",\"cpu_s\":%.6f,\"spun_s\":%.6f,\"elapsed_s\":%.6f,\"directions\":{", report->cpu_s,
           report->spun_s, report->elapsed_s);
    print_direction("up", &report->up);
    putchar(',');
    print_direction("down", &report->down);
    printf("}}");
    end_line();
}
