// serve.c -- one page for browsers on this machine, by plain sockets. Each request has a second to arrive; browsers open connections ahead
// on which they ask nothing, and others are answered meanwhile.
//
// Nobody on another machine can connect. A page of another site, open in a browser here, could ask by a name of its own that leads to
// 127.0.0.1: requests for another host are refused. Nothing that is asked for is a path, and nothing is changed.
#define _GNU_SOURCE  // accept4
#include "../messages.h"
#include "../output.h"
#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST = 8192, CLIENTS = 32 };

typedef struct Client {
    int from;      // its socket
    double until;  // when it is given up
    size_t n;
    char text[REQUEST];
} Client;
static Client *client[CLIENTS];  // those whose request is not there yet, the oldest first
static int n_clients;

int gm_serve_open(long port)
{
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (listening >= 0) setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listening >= 0 && bind(listening, (struct sockaddr *)&at, sizeof at) == 0 && listen(listening, 16) == 0) return listening;
    if (errno == EADDRINUSE) gm_error("watch: port %ld is in use: give another, or --port 0 for any that is free", port);
    else gm_error("watch: port %ld cannot be listened at: %s; --port 0 takes any that is free", port, strerror(errno));
    if (listening >= 0) close(listening);
    return -1;
}

int gm_serve_port(int listening)
{
    struct sockaddr_in at = {0};
    socklen_t size = sizeof at;
    getsockname(listening, (struct sockaddr *)&at, &size);
    return ntohs(at.sin_port);
}

// Reads what is there. 1: up to the blank line; 0: more is to come; -1: nothing will.
static int read_more(Client *c)
{
    const ssize_t more = recv(c->from, c->text + c->n, REQUEST - 1 - c->n, MSG_DONTWAIT);
    if (more <= 0) return more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
    c->n += (size_t)more;
    c->text[c->n] = 0;
    if (strlen(c->text) != c->n) return -1;
    return strstr(c->text, "\r\n\r\n") ? 1 : c->n == REQUEST - 1 ? -1 : 0;
}

static void forget(int k)
{
    shutdown(client[k]->from, SHUT_WR);
    close(client[k]->from);
    free(client[k]);
    memmove(client + k, client + k + 1, sizeof *client * (size_t)(--n_clients - k));
}

static void welcome(int listening)
{
    const int one = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (one < 0) return;
    if (n_clients == CLIENTS) forget(0);
    Client *c = client[n_clients++] = gm_alloc(1, sizeof *c);
    c->from = one;
    c->until = gm_seconds() + 1;
}

// Whether it names this machine: 127.0.0.1 or localhost, with or without a port.
static bool for_this_host(const char *request)
{
    for (const char *line = strstr(request, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, "host:", 5) != 0) continue;
        const char *host = line + 7 + strspn(line + 7, " \t");
        const size_t n = strcspn(host, ": \t\r");
        return (n == 9 && strncmp(host, "127.0.0.1", n) == 0) || (n == 9 && strncasecmp(host, "localhost", n) == 0);
    }
    return false;
}

static void send_all(int to, const char *text, size_t n)
{
    const double until = gm_seconds() + 1;
    while (n > 0) {
        struct pollfd ready = {.fd = to, .events = POLLOUT};
        const double left = until - gm_seconds();
        if (left <= 0 || poll(&ready, 1, (int)(1000 * left) + 1) <= 0) return;
        const ssize_t sent = send(to, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) return;
        text += sent;
        n -= (size_t)sent;
    }
}

static void answer(int to, const char *status, const char *more, const char *body, size_t n)
{
    char *head = gm_format("HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                           "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nX-Content-Type-Options: nosniff\r\n"
                           "%sConnection: close\r\n\r\n",
                           status, n, more);
    send_all(to, head, strlen(head));
    send_all(to, body, n);
    free(head);
}

// Whether the page was sent.
static bool serve_one(int to, const char *request, bool last, void (*put)(FILE *to, const void *what), const void *what)
{
    const bool get = strncmp(request, "GET ", 4) == 0,
               page = get && (strncmp(request + 4, "/ ", 2) == 0 || strncmp(request + 4, "/?", 2) == 0);
    if (!page || !for_this_host(request)) {
        answer(to, !get ? "405 Method Not Allowed" : !page ? "404 Not Found" : "403 Forbidden", "", "", 0);
        return false;
    }
    char *body = NULL;
    size_t n = 0;
    FILE *text = open_memstream(&body, &n);
    if (!text) gm_exhausted(1, 1);
    put(text, what);
    fclose(text);
    answer(to, "200 OK", last ? "" : "Refresh: 1\r\n", body, n);
    free(body);
    return true;
}

// Until a request comes or goes on, or a client is given up, or the time.
static void wait_for_clients(int listening, double until)
{
    struct pollfd ready[CLIENTS + 1] = {{.fd = listening, .events = POLLIN}};
    for (int k = 0; k < n_clients; k++) {
        ready[k + 1] = (struct pollfd){.fd = client[k]->from, .events = POLLIN};
        if (client[k]->until < until) until = client[k]->until;
    }
    const double left = until - gm_seconds();
    poll(ready, (nfds_t)n_clients + 1, left > 0 ? (int)(1000 * left) + 1 : 0);
    if (ready[0].revents) welcome(listening);
}

int gm_serve(int listening, double seconds, bool last, void (*put)(FILE *to, const void *what), const void *what)
{
    const double until = gm_seconds() + seconds;
    int sent = 0;
    while (gm_seconds() < until && !(last && sent > 0)) {
        wait_for_clients(listening, until);
        for (int k = n_clients; k-- > 0;) {
            const int there = read_more(client[k]);
            if (there > 0) sent += serve_one(client[k]->from, client[k]->text, last, put, what);
            if (there != 0 || client[k]->until < gm_seconds()) forget(k);
        }
    }
    while (last && n_clients > 0) forget(0);
    return sent;
}
