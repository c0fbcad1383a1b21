"""A test format of lit that writes down the processor time of each test: a line `SECONDS NAME` in build/seconds, which tests/run reads."""
import os
import resource

import lit.formats


class Timed(lit.formats.ShTest):
    def __init__(self, times):
        super().__init__(False)
        self.times = times

    def execute(self, test, lit_config):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = super().execute(test, lit_config)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        with open(self.times, "a") as f:                 # one write of one line: two workers do not mix theirs
            f.write("%.2f %s\n" % (used, test.getFullName()))
        return result
