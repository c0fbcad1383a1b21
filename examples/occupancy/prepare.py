"""Makes sites.json: 80 sites, five visits each. A site is occupied with probability inv_logit(0.3 + 1.2 wet), and shows the species in a
visit with probability 0.35 if it is."""
import json
import math
import random

random.seed(5)
wet = [round(random.gauss(0, 1), 2) for _ in range(80)]
z = [random.random() < 1 / (1 + math.exp(-0.3 - 1.2 * w)) for w in wet]
seen = [[int(at and random.random() < 0.35) for _ in range(5)] for at in z]
with open("sites.json", "w") as f:
    f.write('{"wet": %s,\n "seen": %s}\n' % (json.dumps(wet), json.dumps(seen)))
print("%d occupied, %d seen" % (sum(z), sum(any(s) for s in seen)))
