"""Makes corpus.json of texts.txt, a text a line: words in lower case, without those of stop.txt's kind and those that occur once."""
import collections
import json
import re

STOP = set("""a an and are as at away back be before by can cut come comes each few for from gives give go goes good has have he him his
how if in is it its like little long look make makes more much must near
next no not of old on one or out over own so some stands stand such takes than that the their them then there they this till time too to
twice two three four eight under until up us very wait well when where while
will with without you your all behind beside across after another any both but down every first had here into just last men most only other
round same see sees seen sit small still through unless we what which who why
would yet""".split())
with open("texts.txt") as f:
    texts = [[w for w in re.findall("[a-z]+", line.lower()) if w not in STOP] for line in f]
plural = {w for t in texts for w in t}
texts = [[w[:-1] if w.endswith("s") and w[:-1] in plural else w for w in t] for t in texts]
count = collections.Counter(w for t in texts for w in t)
vocabulary = sorted(w for w in count if count[w] > 1)
number = {w: k + 1 for k, w in enumerate(vocabulary)}
tokens = [(d + 1, number[w]) for d, t in enumerate(texts) for w in t if w in number]
with open("corpus.json", "w") as f:
    f.write('{"D": %d, "V": %d,\n "doc": %s,\n "word": %s}\n' % (len(texts), len(vocabulary), json.dumps([d for d, _ in tokens]),
                                                                 json.dumps([w for _, w in tokens])))
with open("words.txt", "w") as f:
    f.write("\n".join(vocabulary) + "\n")
print("%d texts, %d words, %d different" % (len(texts), len(tokens), len(vocabulary)))
