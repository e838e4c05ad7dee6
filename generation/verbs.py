"""English verbs as they stand in names of relations and keys: their forms, and which words are one.

A name tells a verb by its form only: "sells", "drafted by", "starring". So the verbs that knowledge
bases use are listed, and what is no form of one of them is no verb here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from generation.english import word_set

# Verbs that take an object and are regular but perhaps for a doubled last letter.
_TRANSITIVE = """
accept accommodate accompany accuse achieve acquire adapt add address adjoin administer admit
adopt advise affect afford aid allege allow ally announce appeal appoint approve arrest assemble
assign assist attach attack attend author award back ban bear beat belong benefit bind bless block
bomb border brand brew broadcast bury call cancel capture carry catch cause celebrate chair
challenge choose chronicle cite claim classify close coach coauthor code coin collect colonize
command commemorate commission compare compile complete compose comprise concern conduct confer
connect conquer conserve consider construct consume contain control convert convict cover create
credit criticize cross cultivate curate cure damage date decide declare decorate dedicate defeat
define delegate deliver deny depict deploy depose derive describe design designate destroy detect
determine develop devise diagnose direct discover discuss dispute dissolve distribute divide
dominate donate draft drain draw drive dub earn edit educate elect elevate eliminate embody employ
enable encode encompass encounter end endorse engage engrave enrol enroll ensure enter entitle
equip erect establish evaluate evolve examine excavate exceed exclude execute exhibit expand expel
explore export express extract fabricate face feature feed film finance find finish fly follow
force form found fund gain generate give govern grant guard guide harbor harvest hate head
headline help hire hold honor honour host house hunt identify illustrate import include
incorporate indicate induct influence inform inhabit inherit inhibit initiate inscribe inspect
inspire install instruct insure integrate intend interpret interview introduce invade invent
invest investigate irrigate isolate issue join judge keep kill know launch lead lease leave lend
license like limit link list lobby locate lose love maintain make manage manipulate manufacture
mark marry mean measure mention mentor merge mine moderate modify murder name narrate need
negotiate nominate notice notify observe obtain occupy offend offer open operate oppose orbit
ordain order organise organize originate overlap overlook oversee own paint pair patent penetrate
perform perpetrate photograph place plan plant play populate portray possess power practice
practise praise precede predict prefer prepare prescribe present preserve prevent print process
produce program prohibit promote propose prosecute protect prove provide publish purchase pursue
quote raise rank rate ratify reach read rebuild recall receive recognize recommend record recruit
refer reform regulate reject relate release remove rename render rent repair repeal replace report
represent require rescue research restore reveal review reward rule sack satirize satisfy schedule
score sculpt seat secure see sell send separate serve set settle shape share shelter ship shoot
show sign sing slay solicit solve span spark speak specialize specify spell sponsor spoof staff
start state steer stock store strengthen structure study submit succeed sue suggest summarize
supersede supervise supply support suppress surpass surround survey sustain swallow symbolize take
target teach tell test top touch tour track trade train transfer transform translate transmit
transport trap treat trigger twin undergo understand unite unveil uphold use utilize value veto
view violate visit visualize voice warn wear weave weigh welcome wield win witness worship write
"""
# Verbs that take none: what they name stands behind a preposition.
_INTRANSITIVE = """
act agree appear apply arise arrive attend begin belong border breed climb collaborate come
commentate compete conflict connect consist continue contribute converge cooperate correspond deal
debut decay depend descend die differ disappear dwell emerge emigrate end exist extend fall fight
flourish flow function go graduate grow happen interact intersect invest lecture lie live look
major marry matriculate meet merge migrate move occur operate originate overlap pair participate
perform pertain play preside qualify rank react reign rely report reside respond result retire
return rise run sail serve shelter ship sit sleep specialize stand star start stay study swim
teach travel vote walk work
"""
# Base form, past, participle, of those that do not end in -ed.
_IRREGULAR = """
bear bore born; become became become; begin began begun; break broke broken; bring brought brought
broadcast broadcast broadcast; build built built; buy bought bought; catch caught caught
choose chose chosen; come came come; cost cost cost; cut cut cut; do did done; draw drew drawn
drive drove driven; eat ate eaten; fall fell fallen; feed fed fed; fight fought fought
find found found; fly flew flown; forget forgot forgotten; get got got; give gave given
go went gone; grow grew grown; have had had; hear heard heard; hit hit hit; hold held held
keep kept kept; know knew known; lead led led; leave left left; lend lent lent; lie lay lain
lose lost lost; make made made; mean meant meant; meet met met; oversee oversaw overseen
put put put; read read read; ride rode ridden; rise rose risen; run ran run; say said said
see saw seen; sell sold sold; send sent sent; set set set; show showed shown; sing sang sung
sit sat sat; slay slew slain; sleep slept slept; speak spoke spoken; spend spent spent
stand stood stood; steal stole stolen; swim swam swum; take took taken; teach taught taught
tell told told; think thought thought; throw threw thrown; understand understood understood
wear wore worn; win won won; write wrote written; arise arose arisen; strike struck struck
pay paid paid
undergo underwent undergone; weave wove woven; shoot shot shot; uphold upheld upheld
rebuild rebuilt rebuilt; beat beat beaten; deal dealt dealt; bind bound bound
"""
# Verbs of several syllables that double their last letter, and others that do not.
_DOUBLED = word_set("""
worship admit cancel commit compel confer control enrol equip expel forget label model occur
outfit overlap patrol permit prefer program quiz rebel refer regret signal submit transfer
transmit travel
""")
# What is so for long, said by "is"; what happened once is said by "was".
_STATES = word_set("""
set dedicate administer affiliate associate base belong bind bound bury call characterize classify
connect consider contain control cover define describe determine divide govern include indicate
inhabit intend interest know license link list locate maintain make manage name operate organize
own practice practise present protect rank recognize regulate relate require say separate share
situate speak sponsor staff support surround symbolize twin use value wear worship marry enrol
enroll rate
""")
# Forms in -s that are rather nouns in the plural where they stand alone, as names do.
_NOUNS_TOO = word_set("""
addresses aids attacks awards bans borders calls causes chairs challenges claims classes coaches
codes commands commissions conflicts contributes controls covers credits crosses cures damages
dates designs documents drafts edits exports features fights finds forces forms funds grants
guards guides heads helps hires hopes hosts imports judges kills labels leads licenses likes
limits links lists loves marks measures murders names notes objects offers orders paints papers
permits photographs places plans plays practices presents prints processes programs promotes
quotes ranks reads records recruits refers releases repairs replies reports results returns
reviews rises rules runs sails scores seats sets shares shows signs sponsors stars states stays
stocks stores studies supplies supports targets tests titles tracks trains transfers transports
travels treats triggers uses values views visits voices votes walks winds wins witnesses works
orbits rates houses benefits ships brews purchases rewards shoots surveys trades praises rents
interviews faces spans harbors harvests swallows honors leases reforms repeals spoofs veto
welcomes concerns appeals beats pairs deals
""")

# ... and what is always one in a name.
_ONLY_NOUNS = word_set("""
films plants structures powers coins brands blocks bombs headlines sacks mines sparks traps tours
issues notices patents textures surfaces
""")


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of a verb: "write", "writes", "wrote", "written", "writing".

    ``transitive``: it takes an object; ``intransitive``: it may do without; ``state``: as a passive
    it is true for long ("is owned by").
    """

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    transitive: bool = True
    intransitive: bool = False
    state: bool = False


def third_person(base: str) -> str:
    """What he or she does: "carries" of "carry"."""
    if base in ("have", "be"):
        return {"have": "has", "be": "is"}[base]
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    if re.search(r"[^z]z$", base):
        return base + "zes"  # quizzes
    return base + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", base) else "s")


def base_of(third: str) -> str:
    """The base form of a verb in -s: "carry" of "carries"."""
    if known := by_third().get(third):
        return known.base
    if third in ("has", "is"):
        return {"has": "have", "is": "be"}[third]
    if third.endswith("ies") and len(third) > 4:
        return third[:-3] + "y"
    if third.endswith("zzes"):
        return third[:-2] if third.startswith("bu") else third[:-3]  # buzz, quiz
    return third[:-2] if re.search(r"(?:[^a]ch|sh|x|ss|o)es$", third) else third[:-1]


def past(base: str) -> str:
    """The past of a verb: "wrote" of "write"."""
    return _irregular()[base][0] if base in _irregular() else _regular(base)


def participle(base: str) -> str:
    """The participle of a verb: "written" of "write"."""
    return _irregular()[base][1] if base in _irregular() else _regular(base)


def gerund(base: str) -> str:
    """The form in -ing: "writing" of "write", "lying" of "lie"."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        return base[:-1] + "ing"
    return _lengthened(base) + "ing"


def _regular(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    return _lengthened(base) + "ed"


def _lengthened(base: str) -> str:
    """The verb with its last letter doubled, where that is done before -ed and -ing."""
    short = re.fullmatch(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]", base)
    return base + base[-1] if short or base in _DOUBLED else base


@cache
def _irregular() -> dict[str, tuple[str, str]]:
    rows = (row.split() for line in _IRREGULAR.splitlines() for row in line.split(";"))
    return {row[0]: (row[1], row[2]) for row in rows if row}


@cache
def _known() -> tuple[Forms, ...]:
    """Every verb that is listed."""
    transitive, intransitive = (dict.fromkeys(t.split()) for t in (_TRANSITIVE, _INTRANSITIVE))
    bases = dict.fromkeys([*transitive, *intransitive, *_irregular(), *sorted(_STATES)])
    return tuple(
        Forms(
            base, third_person(base), past(base), participle(base), gerund(base),
            base in transitive or base not in intransitive, base in intransitive, base in _STATES,
        )
        for base in bases
    )  # fmt: skip


@cache
def by_third() -> dict[str, Forms]:
    """The verbs that are listed, by their form in -s."""
    return {verb.third: verb for verb in reversed(_known()) if verb.third not in _ONLY_NOUNS}


@cache
def by_past() -> dict[str, Forms]:
    """The same by their past ("found" is that of "find", "founded" that of "found")."""
    return {verb.past: verb for verb in reversed(_known())}


@cache
def by_participle() -> dict[str, Forms]:
    """The same by their participle."""
    return {verb.participle: verb for verb in reversed(_known())}


@cache
def by_gerund() -> dict[str, Forms]:
    """The same by their form in -ing."""
    return {verb.gerund: verb for verb in reversed(_known())}


def rather_noun(third: str) -> bool:
    """Whether a form in -s is as likely a noun in the plural where it stands alone: "works"."""
    return third in _NOUNS_TOO
