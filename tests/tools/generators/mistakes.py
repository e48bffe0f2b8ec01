# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes that people make in conditions, the hint that each gets, and what they write when they follow it."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A condition as somebody wrote it.

    ``hint`` is among the suggestions of its findings, and ``followed`` is the condition after that. ``meant`` is what
    the author had in mind, in CEL at its plainest; the same as ``followed`` where it is empty.
    """

    written: str
    hint: str
    followed: str
    meant: str = ""


FREEZE = 'event.EventType == "Freeze"'
BRIEF = "event.DurationInSeconds >= 0 && event.DurationInSeconds < 9"
FIRST = 'event.Resources.exists(e, e == "a")'
SOON = 'notice > duration("300s")'
STRAIGHT = 'write straight quotes: "…"'
SPACE = "replace this character by a plain space"
BRACES = "leave out the braces: a policy is not a template"
DOLLAR = "leave out the $, as in variables.NAME"
LOOP = "a loop names its variable first: x.exists(e, e == 'a')"
NULL = "nothing here is null: ask with has(event.NotBefore) or !has(event.NotBefore)"
ENDS = "name both ends: 0 <= x && x < 9"
IN = "write ! before it, as in !(x in …)"
MATCH = "ask with matches(), contains() or startsWith()"
LIKE = "ask with contains(), startsWith() or matches()"
SECONDS = "say in which unit, as in duration('300s')"
GETTER = "ask it with a function: getFullYear(), getDayOfWeek(), getHours() …"

MISTAKES = (
    # operators
    Mistake(FREEZE.replace("==", "="), "compare with ==", FREEZE),
    Mistake(FREEZE.replace("==", "==="), "compare with ==", FREEZE),
    Mistake(FREEZE.replace("==", "is"), "write ==", FREEZE),
    Mistake(FREEZE.replace("==", "eq"), "write ==", FREEZE),
    Mistake('event.EventType is not "Freeze"', "write !=", 'event.EventType != "Freeze"'),
    Mistake('event.EventType <> "Freeze"', "write !=", 'event.EventType != "Freeze"', '!(event.EventType == "Freeze")'),
    Mistake('event.EventType ne "Freeze"', "write !=", 'event.EventType != "Freeze"'),
    Mistake('event.EventType !== "Freeze"', "compare with !=", 'event.EventType != "Freeze"'),
    Mistake("affects_me and leader", "write &&", "affects_me && leader"),
    Mistake("affects_me AND leader", "write &&", "affects_me && leader"),
    Mistake("affects_me & leader", "write &&", "affects_me && leader"),
    Mistake("affects_me or leader", "write ||", "affects_me || leader"),
    Mistake("affects_me OR leader", "write ||", "affects_me || leader"),
    Mistake("affects_me | leader", "write ||", "affects_me || leader"),
    Mistake("not affects_me", "write !", "!affects_me"),
    Mistake("NOT affects_me", "write !", "!affects_me"),
    Mistake('event.EventType not in ["Freeze"]', IN, '!(event.EventType in ["Freeze"])', f"!({FREEZE})"),
    Mistake(
        'event.EventType in ("Freeze", "Reboot")',
        "a list stands in brackets: in ['a', 'b']",
        'event.EventType in ["Freeze", "Reboot"]',
        'event.EventType == "Freeze" || event.EventType == "Reboot"',
    ),
    Mistake(
        f'{FREEZE} || "Reboot"',
        'write event.EventType in ["Freeze", "Reboot"]',
        'event.EventType in ["Freeze", "Reboot"]',
        'event.EventType == "Freeze" || event.EventType == "Reboot"',
    ),
    Mistake(
        "0 <= event.DurationInSeconds < 9",
        "write 0 <= event.DurationInSeconds && event.DurationInSeconds < 9",
        "0 <= event.DurationInSeconds && event.DurationInSeconds < 9",
        BRIEF,
    ),
    Mistake(
        "9 > event.DurationInSeconds >= 0",
        "write 9 > event.DurationInSeconds && event.DurationInSeconds >= 0",
        "9 > event.DurationInSeconds && event.DurationInSeconds >= 0",
        BRIEF,
    ),
    Mistake("event.DurationInSeconds between 0 and 9", ENDS, BRIEF),
    Mistake("event.DurationInSeconds in 0..9", ENDS, BRIEF),
    Mistake(
        "event.DurationInSeconds in range(0, 9)",
        "name both ends: 0 <= x && x < 9",
        "0 <= event.DurationInSeconds && event.DurationInSeconds < 9",
        BRIEF,
    ),
    Mistake(
        "event.DurationInSeconds ** 2 > 4",
        "there are no powers: write x * x",
        "event.DurationInSeconds * event.DurationInSeconds > 4",
    ),
    Mistake(
        "event.DurationInSeconds++ > 1", "an expression changes nothing: write x + 1", "event.DurationInSeconds + 1 > 1"
    ),
    Mistake(
        "event.DurationInSeconds += 1", "an expression changes nothing: write x + 1", "event.DurationInSeconds + 1 > 1"
    ),
    Mistake(
        "event.DurationInSeconds ?? 10 < 9",
        "write x.?field.orValue(…)",
        "event.?DurationInSeconds.orValue(10) < 9",
        "has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    ),
    Mistake(
        "event?.DurationInSeconds < 9",
        "write event.DurationInSeconds, and has(event.DurationInSeconds) && before it",
        "has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    ),
    Mistake(
        "event.?DurationInSeconds < 9",
        "remove the ?, or say what holds without a value, as in x.orValue(…)",
        "event.DurationInSeconds < 9",
        "has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    ),
    Mistake('event.Description =~ "a"', MATCH, 'event.Description.matches("a")'),
    Mistake('event.Description ~= "a"', MATCH, 'event.Description.matches("a")'),
    Mistake('event.Description like "a%"', LIKE, 'event.Description.startsWith("a")'),
    Mistake(
        'event.Description contains "a"', "write .contains(…), with a dot before it", 'event.Description.contains("a")'
    ),
    Mistake(
        'event.Description.startsWith "a"',
        "write .startsWith(…), with a dot before it",
        'event.Description.startsWith("a")',
    ),
    # what begins and what ends
    Mistake("affects_me &&", "something is missing after &&", "affects_me && leader"),
    Mistake("&& affects_me", "something is missing before this", "leader && affects_me"),
    Mistake("affects_me && && leader", "something is missing before this", "affects_me && leader"),
    Mistake("(affects_me", "close the ( with )", "(affects_me)"),
    Mistake("affects_me)", "there is no ( for this: leave it out", "affects_me"),
    Mistake("affects_me,", "leave it out", "affects_me"),
    Mistake("affects_me; leader", "join conditions with && or ||", "affects_me && leader"),
    Mistake("affects_me # why", "a comment begins with //", "affects_me // why", "affects_me"),
    Mistake("affects_me ? leader", "write condition ? value : other value", "affects_me ? leader : false"),
    Mistake(
        "if affects_me then leader",
        "write condition ? value : other value; or && and ||",
        "affects_me ? leader : false",
    ),
    Mistake("return affects_me", "leave out return: the expression is the value", "affects_me"),
    Mistake("{{ affects_me }}", BRACES, "affects_me"),
    Mistake('"{{ affects_me }}"', "a policy is not a template: write affects_me", "affects_me"),
    Mistake("$brief", DOLLAR, "variables.brief", "event.DurationInSeconds < 9"),
    Mistake("${brief}", DOLLAR, "variables.brief", "event.DurationInSeconds < 9"),
    # characters
    Mistake("event.EventType == “Freeze”", STRAIGHT, FREEZE),
    Mistake("event.EventType == „Freeze“", STRAIGHT, FREEZE),
    Mistake("event.EventType == ‘Freeze’", "write straight quotes: '…'", FREEZE),
    Mistake('event.EventType\u00a0== "Freeze"', SPACE, FREEZE),
    Mistake('event.EventType == "Freeze" &&\u200b affects_me', SPACE, f"{FREEZE} && affects_me"),
    Mistake('event.EventType\u3000== "Freeze"', SPACE, FREEZE),
    Mistake("event.DurationInSeconds < 1_000", "write 1000", "event.DurationInSeconds < 1000"),
    Mistake(
        'f"{event.EventType}" == "Freeze"',
        "join texts with +, as in 'a ' + event.EventType",
        '"" + event.EventType == "Freeze"',
    ),
    # values of other languages
    Mistake("affects_me == True", "write true", "affects_me == true", "affects_me"),
    Mistake("affects_me == False", "write false", "affects_me == false", "!affects_me"),
    Mistake("affects_me == yes", "write true", "affects_me == true", "affects_me"),
    Mistake('affects_me == "true"', "remove the quotes: true", "affects_me == true", "affects_me"),
    Mistake("affects_me == 1", "write true", "affects_me == true", "affects_me"),
    Mistake("event.NotBefore == None", NULL, "!has(event.NotBefore)"),
    Mistake("event.NotBefore != nil", NULL, "has(event.NotBefore)"),
    Mistake("event.NotBefore != undefined", NULL, "has(event.NotBefore)"),
    Mistake("event.NotBefore == null", "nothing here is null; write !has(event.NotBefore)", "!has(event.NotBefore)"),
    Mistake("event.NotBefore is null", "write !has(…), as in !has(event.NotBefore)", "!has(event.NotBefore)"),
    Mistake("event.NotBefore is not null", "write has(…), as in has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake("event.NotBefore is defined", "write has(…), as in has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake('event.NotBefore == ""', "no time is ever blank; write !has(event.NotBefore)", "!has(event.NotBefore)"),
    Mistake('event.DurationInSeconds < "9"', "remove the quotes: 9", "event.DurationInSeconds < 9"),
    Mistake("event.EventType == Freeze", 'put it in quotes: "Freeze"', FREEZE),
    Mistake("event.EventType == freeze", 'put it in quotes: "Freeze"', FREEZE),
    Mistake('event.EventType == "freeze"', "did you mean Freeze?", FREEZE),
    Mistake('event.EventType == "Reeboot"', "did you mean Reboot?", 'event.EventType == "Reboot"'),
    # presence
    Mistake('has("event.NotBefore")', "remove the quotes: has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake("has event.NotBefore", "write has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake("has(event)", "write has(event.NotBefore), for example", "has(event.NotBefore)"),
    Mistake('has(vm.tags["role"])', 'write "role" in vm.tags', '"role" in vm.tags'),
    Mistake("exists(event.NotBefore)", "write has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake("defined(event.NotBefore)", "write has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake("isset(event.NotBefore)", "write has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake('event.has("NotBefore")', "write has(event.NotBefore)", "has(event.NotBefore)"),
    Mistake('vm.tags.has_key("role")', 'write "role" in vm.tags', '"role" in vm.tags'),
    # sizes and elements
    Mistake("event.Resources.size == 1", "write .size()", "event.Resources.size() == 1"),
    Mistake("event.Resources.length == 1", "write .size()", "event.Resources.size() == 1"),
    Mistake("event.Resources.length() == 1", "write event.Resources.size()", "event.Resources.size() == 1"),
    Mistake("event.Resources.count() == 1", "write event.Resources.size()", "event.Resources.size() == 1"),
    Mistake("len(event.Resources) == 1", "did you mean size?", "size(event.Resources) == 1"),
    Mistake("size event.Resources == 1", "write event.Resources.size()", "event.Resources.size() == 1"),
    Mistake("events.count == 1", "write .size()", "events.size() == 1"),
    Mistake("event.Resources == 1", "write event.Resources.size()", "event.Resources.size() == 1"),
    Mistake("event.Resources.isEmpty()", "write event.Resources.size() == 0", "event.Resources.size() == 0"),
    Mistake("!event.Resources", "write event.Resources.size() == 0", "event.Resources.size() == 0"),
    Mistake("event.Resources", "ask for its size, as in event.Resources.size() > 0", "event.Resources.size() > 0"),
    Mistake("event", "ask for one of its fields, as in event.NAME == …", FREEZE),
    Mistake('event.Resources.first() == "a"', "write event.Resources[0]", 'event.Resources[0] == "a"'),
    Mistake('event.Resources.contains("a")', "ask with in, as in 'value' in event.Resources", '"a" in event.Resources'),
    Mistake('event.Resources.includes("a")', "did you mean contains?", '"a" in event.Resources'),
    Mistake(
        'events.EventType == "Freeze"',
        "ask each element, as in events.exists(e, e.EventType == …)",
        'events.exists(e, e.EventType == "Freeze")',
    ),
    # loops
    Mistake('event.Resources.exists(r -> r == "a")', LOOP, FIRST),
    Mistake('event.Resources.some(r => r == "a")', LOOP, FIRST),
    Mistake('event.Resources.exists(lambda r: r == "a")', LOOP, FIRST),
    Mistake('event.Resources.exists("a")', "write event.Resources.exists(e, …)", FIRST),
    Mistake('any(event.Resources, r, r == "a")', "write event.Resources.exists(e, …)", FIRST),
    Mistake('event.Resources.any(r, r == "a")', "did you mean exists?", FIRST),
    Mistake(
        '[r for r in event.Resources if r == "a"]',
        "write x.filter(e, …), or x.map(e, …)",
        'event.Resources.filter(e, e == "a").size() > 0',
    ),
    # times and durations
    Mistake('notice > "5m"', "write duration('5m')", SOON),
    Mistake("notice > 300", SECONDS, SOON),
    Mistake("notice > 5m", "write duration('5m')", SOON),
    Mistake("notice > 300s", "write duration('300s')", SOON),
    Mistake("notice > duration(300)", "write duration('300s')", SOON),
    Mistake('notice > duration("5 minutes")', "write 5m", 'notice > duration("5m")', SOON),
    Mistake('notice > duration("5min")', "write 5m", 'notice > duration("5m")', SOON),
    Mistake('notice > duration("300 seconds")', "write 300s", SOON),
    Mistake('notice > duration("2 hours")', "write 2h", 'notice > duration("2h")', 'notice > duration("7200s")'),
    Mistake('notice > duration("1d")', "there are no days in CEL: write 24h", 'notice > duration("24h")'),
    Mistake('notice > duration("1 week")', "write 168h", 'notice > duration("168h")'),
    Mistake("notice.minutes > 5", "write .getMinutes()", "notice.getMinutes() > 5"),
    Mistake("notice.total_seconds() > 300", "did you mean getSeconds?", "notice.getSeconds() > 300"),
    Mistake("event.NotBefore - now > 300", SECONDS, 'event.NotBefore - now > duration("300s")'),
    Mistake("event.NotBefore > now + 300", SECONDS, 'event.NotBefore > now + duration("300s")'),
    Mistake("event.DurationInSeconds < 9s", "write 9, in seconds", "event.DurationInSeconds < 9"),
    Mistake("event.NotBefore < now()", "now is a value: leave out ()", "event.NotBefore < now"),
    Mistake("now.hour >= 22", "write .getHours()", "now.getHours() >= 22"),
    Mistake("now.getHours >= 22", "write .getHours()", "now.getHours() >= 22"),
    Mistake("getHours(now) >= 22", "write now.getHours()", "now.getHours() >= 22"),
    Mistake("now.hours() >= 22", "write now.getHours()", "now.getHours() >= 22"),
    Mistake("now.day == 1", GETTER, "now.getDayOfMonth() == 0"),
    Mistake('now.getDayOfWeek() == "Saturday"', "days are numbers, Sunday is 0: write 6", "now.getDayOfWeek() == 6"),
    # names
    Mistake("brief", "write variables.brief", "variables.brief", "event.DurationInSeconds < 9"),
    Mistake("variables.breif", "did you mean brief?", "variables.brief", "event.DurationInSeconds < 9"),
    Mistake("event.DurationInSeconds < limit", "write params.limit", "event.DurationInSeconds < params.limit"),
    Mistake("event.DurationInSeconds < params.limits", "did you mean limit?", "event.DurationInSeconds < params.limit"),
    Mistake('EventType == "Freeze"', "write event.EventType", FREEZE),
    Mistake('tags.role == "db"', "write vm.tags", 'vm.tags.role == "db"'),
    Mistake('vm.role == "db"', "a tag of the VM is vm.tags.role", 'vm.tags.role == "db"'),
    Mistake('inventory_hostname == "a"', "write vm.name", 'vm.name == "a"'),
    Mistake('vm.hostname == "a"', "did you mean name?", 'vm.name == "a"'),
    Mistake("event.Duration < 9", "did you mean DurationInSeconds?", "event.DurationInSeconds < 9"),
    Mistake('event.Source == "User"', "did you mean EventSource?", 'event.EventSource == "User"'),
    Mistake('event.type == "Freeze"', "did you mean EventType?", FREEZE),
    Mistake('event["EventType"] == "Freeze"', "write .EventType", FREEZE),
    Mistake("event.get('EventType') == 'Freeze'", "write event.EventType", FREEZE),
    Mistake(
        "vm.tags.get('role', 'db') == 'web'",
        "write vm.tags[?'role'].orValue('db')",
        "vm.tags[?'role'].orValue('db') == 'web'",
    ),
    Mistake("is_leader", "did you mean leader?", "leader"),
    Mistake("leader()", "leader is a value: leave out ()", "leader"),
    # functions
    Mistake('event.EventType.equals("Freeze")', 'write event.EventType == "Freeze"', FREEZE),
    Mistake('event.Description.lower() == "a"', "did you mean lowerAscii?", 'event.Description.lowerAscii() == "a"'),
    Mistake(
        'lower(event.Description) == "a"',
        "write event.Description.lowerAscii()",
        'event.Description.lowerAscii() == "a"',
    ),
    Mistake('event.Description.match("a")', "did you mean matches?", 'event.Description.matches("a")'),
    Mistake('event.Description.startswith("a")', "did you mean startsWith?", 'event.Description.startsWith("a")'),
    Mistake('str(event.DurationInSeconds) == "9"', "did you mean string?", 'string(event.DurationInSeconds) == "9"'),
    Mistake(
        "max(event.DurationInSeconds, 3) < 9",
        "write math.greatest(event.DurationInSeconds, 3)",
        "math.greatest(event.DurationInSeconds, 3) < 9",
    ),
    Mistake(
        "math.max(event.DurationInSeconds, 3) < 9",
        "write math.greatest(event.DurationInSeconds, 3)",
        "math.greatest(event.DurationInSeconds, 3) < 9",
    ),
    Mistake(
        "abs(event.DurationInSeconds) < 9",
        "write math.abs(event.DurationInSeconds)",
        "math.abs(event.DurationInSeconds) < 9",
    ),
    Mistake(
        "math.greatst(event.DurationInSeconds, 3) < 9",
        "did you mean math.greatest?",
        "math.greatest(event.DurationInSeconds, 3) < 9",
    ),
    Mistake(
        "sets.contain(event.Resources, ['a'])", "did you mean sets.contains?", "sets.contains(event.Resources, ['a'])"
    ),
    Mistake(
        '"a" + event.DurationInSeconds == "a9"',
        "write string(event.DurationInSeconds)",
        '"a" + string(event.DurationInSeconds) == "a9"',
    ),
    Mistake(
        '"{}".format(event.EventType) == "Freeze"',
        "write 'text %s'.format([value])",
        '"%s".format([event.EventType]) == "Freeze"',
    ),
)
