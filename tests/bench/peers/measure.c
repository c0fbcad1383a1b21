// Runs a command; then a line with its processor seconds, children included, and its peak memory in MB. (A process that starts another
// leaves it its own peak, so this one is small.)
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status;
    struct rusage used;
    const pid_t pid = fork();
    (void)argc;
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &used) < 0) return 126;
    printf("\nused %.6f %.2f\n",
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
           (double)used.ru_maxrss / 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
