"""English words and phrases with what a careful writer makes of them.

They were written by hand, before the inflection that is measured by them: names of concepts, keys,
relations and units as knowledge bases have them.
"""

from __future__ import annotations


def _pairs(text: str) -> list[tuple[str, str]]:
    """Lines "singular: plural; singular: plural"."""
    parts = (part for line in text.splitlines() for part in line.split(";") if part.strip())
    return [tuple(side.strip() for side in part.split(":")) for part in parts]  # type: ignore[misc]


# One: several.
PLURALS = _pairs("""
城市: 城市; 米: 米; מדינה: מדינה
wolf: wolves; knife: knives; wife: wives; leaf: leaves; shelf: shelves; loaf: loaves; calf: calves
half: halves; thief: thieves; life: lives; roof: roofs; chief: chiefs; reef: reefs; cliff: cliffs
belief: beliefs; proof: proofs; golf club: golf clubs; gulf: gulfs; safe: safes; dwarf: dwarfs
hero: heroes; potato: potatoes; tomato: tomatoes; echo: echoes; torpedo: torpedoes; veto: vetoes
photo: photos; piano: pianos; video: videos; studio: studios; radio station: radio stations
casino: casinos; logo: logos; embryo: embryos; volcano: volcanoes; archipelago: archipelagos
epoch: epochs; monarch: monarchs; stomach: stomachs; patriarch: patriarchs; church: churches
branch: branches; match: matches; dish: dishes; box: boxes; quiz: quizzes; bus: buses; gas: gases
lens: lenses; virus: viruses; campus: campuses; status: statuses; census: censuses; bonus: bonuses
class: classes; address: addresses; boss: bosses; princess: princesses; waltz: waltzes
hypothesis: hypotheses; analysis: analyses; crisis: crises; basis: bases; thesis: theses
axis: axes; oasis: oases; diagnosis: diagnoses; synthesis: syntheses; parenthesis: parentheses
phenomenon: phenomena; criterion: criteria; bacterium: bacteria; stratum: strata; taxon: taxa
museum: museums; stadium: stadiums; album: albums; forum: forums; aquarium: aquariums
nucleus: nuclei; alumnus: alumni; fungus: fungi; genus: genera; larva: larvae; alga: algae
index: indexes; appendix: appendices; matrix: matrices; vertex: vertices
person: people; man: men; woman: women; child: children; foot: feet; tooth: teeth; mouse: mice
goose: geese; ox: oxen; businessman: businessmen; policewoman: policewomen; human: humans
German: Germans; Roman emperor: Roman emperors; talisman: talismans; grandchild: grandchildren
series: series; species: species; aircraft: aircraft; spacecraft: spacecraft; sheep: sheep
fish: fish; deer: deer; salmon: salmon; headquarters: headquarters; crossroads: crossroads
means of transport: means of transport; percent: percent; hertz: hertz; kilohertz: kilohertz
yen: yen; yuan: yuan; lux: lux; siemens: siemens; offspring: offspring; works: works
country: countries; city: cities; bay: bays; monkey: monkeys; valley: valleys
university: universities
body of water: bodies of water; member state of NATO: member states of NATO
head of state: heads of state; head of government: heads of government; coat of arms: coats of arms
piece of music: pieces of music; work of art: works of art; prisoner of war: prisoners of war
point of interest: points of interest; city with powiat rights: cities with powiat rights
women's rights organization: women's rights organizations; sovereign state: sovereign states
mother-in-law: mothers-in-law; attorney general: attorneys general; court-martial: courts-martial
governor-general: governors-general; passer-by: passers-by; runner-up: runners-up
award received: awards received; position held: positions held; sport played: sports played
language spoken: languages spoken; work written: works written; place served: places served
university or college: universities or colleges; TV series: TV series; short film: short films
person in charge: people in charge; bridge over a river: bridges over a river
square kilometre: square kilometres; gram per cubic centimetre: grams per cubic centimetre
metre per second: metres per second; degree Celsius: degrees Celsius; US dollar: US dollars
Swiss franc: Swiss francs; pound sterling: pounds sterling; kilowatt hour: kilowatt hours
henry: henries; century: centuries; party: parties; kibbutz: kibbutzim; opus: opuses
Nobel laureate in physics: Nobel laureates in physics; secretary of state: secretaries of state
vice president of the United States: vice presidents of the United States
""")

# Behind their article.
ARTICLES = (
    """
an 11th century church|an 8-bit computer|an 18-hole course|an 80-page book|an 800-metre race
a 10-year plan|a 5th place|a 100-metre race|a 1st division|a 21st century novel|a 180-degree turn
a Ukrainian|a European|a one-party state|an hour|an hourly rate|an heir|an honour|an honest man
a horse|a hotel|a historic site|a house|a university|a unit|a union|a unique name|a uniform
an uninhabited territory|an unincorporated area|an uncle|an umbrella|an unknown author
a user|a used car|a useful plant|a usual name|a utility|a utopia|a ubiquitous plant|a urinal
a ewe|a eulogy|a eukaryote|an eagle|an ear|an earl
a one-off|a once great power|an onion|an oncologist
an ISO code|a UN body|an NGO|a NATO member|a NASA mission|a UNESCO site|an MP|an MEP|an EU member
a US state|a USB port|an FBI agent|a CIA agent|an RNA virus|a DNA sequence|a GDP|an SMS|an HIV test
a UK resident|a UFO|a URL|an X-ray|an x-axis|a T-shirt|an M16|a B-side|an L-shaped house|an F1 race
an area|an elevation|an island|an ocean|an urban area|a year|a youth hostel|a yacht|a wind farm
a FIFA ranking|an NBA team|an NFL team|a UEFA title|a U-boat|an S-Bahn line|an LGBT event
an Ubuntu release|an Ulster county|a Uruguayan|an Ugric language|a Uranus moon|a Eurasian lynx
an Oscar|an Einstein prize|an IOC code|an IATA code|an IMDb ID|an ISBN|a PhD|an MSc|an RPG|a ROM
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

# Nouns and phrases in the plural, and others in the singular.
MANY = (
    """
emissions|foreign exchange reserves|notable works|children|people|women|feet|criteria|bacteria
phenomena|wolves|countries|analyses|heroes|critics|topics|republics|lyrics|fabrics|characteristics
garments|vehicles|machines|exports of goods|members of parliament|parents|siblings|awards received
positions held|goods|earnings|clothes|trousers|scissors|cattle|police|alumni|taxa|strata|languages
buses|gases|classes|addresses|boxes|statuses|viruses|prizes|houses|diagnoses|axes|oases|mice
shares of the company|official languages|women's rights organizations|heads of state|pharmaceuticals
metals|refined petroleum products|soybeans|shoes|tomatoes|electronics parts|integrated circuits
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
ONE = (
    """
news|mathematics|physics|politics|economics|athletics|linguistics|gymnastics|gas|bus|campus|virus
status|census|atlas|lens|basis|thesis|analysis|crisis|axis|tennis|class|address|process|business
access|success|loss|mass|series|TV series|species|means of transport|radius|nucleus|genus
consensus|canvas|Christmas|chaos|diabetes|rabies|measles|Mars|iris|pelvis|bronchitis|apparatus
headquarters|aircraft|fish|corpus|Netherlands|Philippines|Wales|Paris|Texas|Brussels|Athens
Honduras|Cyprus|Los Angeles|Buenos Aires|member of parliament|head of state|area in hectares
number of seats|speed in knots|date of birth|percentage of women|chassis|debris|ethos|cosmos|surplus
Achilles|molasses|boss|princess|goddess|witness|wilderness|illness|focus|bonus
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

# Base form, behind he or she, in the past, as participle.
VERBS = [
    tuple(line.split())
    for line in """
sell sells sold sold
own owns owned owned
marry marries married married
die dies died died
star stars starred starred
carry carries carried carried
play plays played played
teach teaches taught taught
go goes went gone
do does did done
have has had had
publish publishes published published
pass passes passed passed
fix fixes fixed fixed
echo echoes echoed echoed
receive receives received received
draft drafts drafted drafted
stop stops stopped stopped
refer refers referred referred
visit visits visited visited
develop develops developed developed
compose composes composed composed
direct directs directed directed
write writes wrote written
win wins won won
hold holds held held
lead leads led led
build builds built built
found founds founded founded
find finds found found
tie ties tied tied
lie lies lay lain
replace replaces replaced replaced
precede precedes preceded preceded
succeed succeeds succeeded succeeded
create creates created created
treat treats treated treated
locate locates located located
heat heats heated heated
agree agrees agreed agreed
free frees freed freed
use uses used used
cause causes caused caused
argue argues argued argued
love loves loved loved
include includes included included
produce produces produced produced
influence influences influenced influenced
manage manages managed managed
belong belongs belonged belonged
change changes changed changed
bring brings brought brought
organize organizes organized organized
advise advises advised advised
discuss discusses discussed discussed
cross crosses crossed crossed
call calls called called
control controls controlled controlled
travel travels travelled travelled
borrow borrows borrowed borrowed
follow follows followed followed
consist consists consisted consisted
invent invents invented invented
acquire acquires acquired acquired
inspire inspires inspired inspired
appear appears appeared appeared
cover covers covered covered
measure measures measured measured
name names named named
define defines defined defined
join joins joined joined
contain contains contained contained
train trains trained trained
plan plans planned planned
study studies studied studied
employ employs employed employed
occupy occupies occupied occupied
buzz buzzes buzzed buzzed
quiz quizzes quizzed quizzed
wear wears wore worn
grow grows grew grown
fly flies flew flown
sing sings sang sung
give gives gave given
speak speaks spoke spoken
""".strip().splitlines()
]
