#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "cli/tokens.hpp"
#include "core/error.hpp"
#include "core/input_text.hpp"
#include "core/registry.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

constexpr Verbs kRun = only(Verb::run), kSelftest = only(Verb::selftest), kCompare = only(Verb::compare),
                kCalibrate = only(Verb::calibrate), kExplain = only(Verb::explain), kDraw = only(Verb::draw),
                kVerify = only(Verb::verify);

/// A row of the table of verbs.
struct VerbWord {
  std::string_view word;
  std::string_view operands;  // what stands behind it, a word each
  Verb verb;
  std::string_view help;
};

constexpr VerbWord kVerbs[] = {
    {"run", "", Verb::run, "check and time variants (the default)"},
    {"list", "", Verb::list, "show every variant, and why one is unavailable here"},
    {"selftest", "", Verb::selftest, "run wrong and cheating kernels, each of which must be caught"},
    {"compare", "OLD NEW", Verb::compare, "tell what became slower from one JSON report to another"},
    {"draw", "", Verb::draw, "write the tensors that a check would draw, for other software (--tensors)"},
    {"verify", "", Verb::verify, "check an output that something else computed (--tensors)"},
    {"calibrate", "", Verb::calibrate, "time an empty launch and a copy: what the clock resolves"},
    {"explain", "VARIANT", Verb::explain, "show what a variant takes: launch, work, floors, bank conflicts"},
    {"version", "", Verb::version, "print the version and the revision it was built from"},
    {"help", "", Verb::help, "print this text"},
};

constexpr std::string_view kExamples = R"(
  convmish-bench --variant all
  convmish-bench --variant 'naive,cudnn_*:tf32' --shape n64c64h256w256k128
  convmish-bench --config configs/edges.json --no-time --device cpu
  convmish-bench --variant tiled --min-time 1 --json tiled.json
  convmish-bench explain tiled --shape n64c64h256w256k128
  convmish-bench --config configs/resnet.json --tune --tune-out tune.json
  convmish-bench --config configs/resnet.json --baseline yesterday.json --max-slowdown 3%
  convmish-bench verify --tensors out/ --math-class tf32
  convmish-bench draw --tensors in/ --shape n8c64h56w56k64 --fill normal,wide
)";

constexpr std::string_view kExitCodes = R"(
  0  every case passed, or was skipped for a reason that its variant declares
  1  a case failed or is mistrusted, an impossible time included
  2  a case is slower than the baseline report allows, or passed there and is
     wrong now; not one that is skipped or missing now
  3  the command line, a config file, a tuning table or an output path is wrong
  4  no usable device, the machine misbehaves, or nothing could run
  5  a variant crashed or timed out
)";

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (begin == end)
      throw InputError(fmt::format("\"{}\" has an empty item; want names separated by single commas", text));
    items.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

/// The items of all values: `--fill a,b --fill c` is `--fill a,b,c`.
std::vector<std::string> all_items(const Values& values) {
  return split_list(fmt::format("{}", fmt::join(values, ",")));
}

double parse_seconds(const std::string& text) {
  const auto seconds = read_real(text);
  if (!seconds || !is_valid_seconds(*seconds))
    throw InputError(fmt::format("got \"{}\"; want {}", text, wanted_seconds()));
  return *seconds;
}

/// "3%" as 0.03.
double parse_percent(const std::string& text) {
  constexpr double kMost = 1000;
  const auto share = text.ends_with('%') ? read_share(text) : std::nullopt;
  if (!share || !(0 <= *share && 100 * *share <= kMost))
    throw InputError(fmt::format("got \"{}\"; want a percentage from 0% to {}%, as in 3%", text, kMost));
  return *share;
}

DeviceChoice parse_device(const std::string& text) {
  using Kind = DeviceChoice::Kind;
  if (text == "auto") return {};
  if (text == "cpu") return {Kind::cpu};
  if (text == "cuda") return {Kind::cuda};
  constexpr std::string_view kIndexed = "cuda:";
  if (text.starts_with(kIndexed)) {
    const auto index = read_integer(std::string_view(text).substr(kIndexed.size()));
    if (index && 0 <= *index && *index <= std::numeric_limits<int>::max())
      return {Kind::cuda, static_cast<int>(*index)};
  }
  throw InputError(fmt::format("got \"{}\"; want auto, cpu, cuda or cuda:INDEX, as in cuda:0", text));
}

std::vector<Option> option_table() {
  const RunOptions run;
  return {
      {"What to run", "variant", kRun, Takes::value, "NAMES",
       "variants by name, separated by commas; globs, and a math\n"
       "class behind a colon, are allowed: naive,cudnn_*:tf32;\n"
       "all: every variant but ablations, which are taken by name,\n"
       "or together as ablation (default: all)",
       [](const Values& values, CommandLine& line) {
         line.run.variants = all_items(values);
         for (const std::string& pattern : line.run.variants)
           if (const auto why = check_pattern(pattern)) throw InputError(*why);
       }},
      {"What to run", "shape", kRun | kExplain | kDraw | kVerify, Takes::value, "SHAPE",
       "batch n, input channels c, input height h and width w,\n"
       "output channels k, as in n64c64h256w256k128; repeatable\n"
       "(default: the headline shape, or a small one on the CPU)",
       [](const Values& values, CommandLine& line) {
         line.run.shapes.clear();
         for (const std::string& text : values) line.run.shapes.push_back(parse_shape(text));
       }},
      {"What to run", "config", kRun, Takes::value, "FILE",
       "shapes, variants, fills and timing from a JSON file\n"
       "(configs/schema/config.schema.json); options given here win",
       nullptr},
      {"What to run", "device", kRun | kSelftest | kCalibrate | kExplain | kDraw | kVerify, Takes::value,
       "DEVICE",
       "auto, cpu, cuda or cuda:INDEX (default: auto, the GPU\n"
       "where there is one, else the CPU)",
       [](const Values& values, CommandLine& line) { line.device = parse_device(values.back()); }},
      {"What to run", "timeout", kRun | kSelftest, Takes::value, "SECONDS",
       fmt::format("stop a variant whose check, or one timed launch, takes longer\n(default: {})",
                   run.timeout_s),
       [](const Values& values, CommandLine& line) {
         const auto seconds = read_integer(values.back());
         if (!seconds || !is_valid_timeout(*seconds))
           throw InputError(fmt::format("got \"{}\"; want {}", values.back(), wanted_timeout()));
         line.run.timeout_s = static_cast<int>(*seconds);
       }},
      {"Inputs and check", "fill", kRun | kDraw | kVerify, Takes::value, "NAMES",
       fmt::format("how inputs are drawn, separated by commas:\n{}\n(default: a set that the check chooses)",
                   fmt::join(spellings<Fill>(), ", ")),
       [](const Values& values, CommandLine& line) {
         line.run.fills.clear();
         for (const std::string& name : all_items(values)) line.run.fills.push_back(parse_word<Fill>(name));
       }},
      {"Inputs and check", "seed", kRun | kSelftest | kDraw | kVerify, Takes::value, "N",
       fmt::format("of the inputs: the same on every device (default: {})", run.seed),
       [](const Values& values, CommandLine& line) {
         const auto seed = read_unsigned(values.back());
         if (!seed)
           throw InputError(fmt::format("got \"{}\"; want an integer from 0 to {}", values.back(),
                                        std::numeric_limits<std::uint64_t>::max()));
         line.run.seed = *seed;
       }},
      {"Inputs and check", "tolerance", kRun, Takes::value, "RULE",
       "tell this rule's answer too, beside the strict verdict, which\n"
       "alone decides: rtol=R,atol=A, or kernelbench (1e-4 on five\n"
       "inputs, against float64 and against TF32); repeatable",
       [](const Values& values, CommandLine& line) {
         line.run.tolerances.clear();
         for (const std::string& text : values) line.run.tolerances.push_back(parse_tolerance(text));
       }},
      {"Inputs and check", "check", kRun, Takes::on_off, "",
       "compare with the float64 reference (default: on)",
       [](const Values& values, CommandLine& line) { line.run.check = values.back() == kOn; }},
      {"Time", "time", kRun, Takes::on_off, "", "time the variants that passed (default: on)",
       [](const Values& values, CommandLine& line) { line.run.time = values.back() == kOn; }},
      {"Time", "min-time", kRun, Takes::value, "SECONDS",
       fmt::format("least time spent on a variant and shape (default: {})", run.timing.least_s()),
       [](const Values& values, CommandLine& line) {
         line.run.timing.min_time_s = parse_seconds(values.back());
       }},
      {"Time", "max-time", kRun, Takes::value, "SECONDS",
       fmt::format("stop there, even if the median is still uncertain\n(default: {})", run.timing.most_s()),
       [](const Values& values, CommandLine& line) {
         line.run.timing.max_time_s = parse_seconds(values.back());
       }},
      {"Time", "ci-half-width", kRun, Takes::value, "SHARE",
       fmt::format("stop when the median's 95 % interval is within this\nof it, either way (default: {}%)",
                   100 * run.timing.ci_half_width),
       [](const Values& values, CommandLine& line) {
         const auto share = read_share(values.back());
         if (!share || !is_valid_half_width(*share))
           throw InputError(fmt::format("got \"{}\"; want {} or 0.5%", values.back(), wanted_half_width()));
         line.run.timing.ci_half_width = *share;
       }},
      {"Time", "samples", kRun, Takes::value, "N", "time exactly so many launches instead",
       [](const Values& values, CommandLine& line) {
         const auto samples = read_integer(values.back());
         if (!samples || !is_valid_samples(*samples))
           throw InputError(fmt::format("got \"{}\"; want {}", values.back(), wanted_samples()));
         line.run.timing.samples = static_cast<int>(*samples);
       }},
      {"Time", "cache", kRun, Takes::value, "STATE",
       "before each launch: cold (the last-level cache is\n"
       "overwritten), hot, or auto: cold on a GPU, unless the\n"
       "data is over 4 times the cache's size (default: auto)",
       [](const Values& values, CommandLine& line) { line.run.timing.cache = parse_cache(values.back()); }},
      {"Time", "duty-cycle", kRun, Takes::value, "SHARE",
       fmt::format("share of the time that a GPU works between launches; it\n"
                   "rests for the remainder, and keeps its clock where power\n"
                   "limits it; 100%: sustained load (default: {:g}%)",
                   100 * *run.timing.duty_cycle),
       [](const Values& values, CommandLine& line) {
         const auto share = read_share(values.back());
         if (!share || !is_valid_duty_cycle(*share))
           throw InputError(fmt::format("got \"{}\"; want {} or 50%", values.back(), wanted_duty_cycle()));
         line.run.timing.duty_cycle = *share;
       }},
      {"Time", "kept-ceilings", kRun | kSelftest | kExplain, Takes::on_off, "",
       "take the rates that this GPU can reach from an earlier\n"
       "run, if driver and tool are the same, rather than\n"
       "measure them (default: on)",
       [](const Values& values, CommandLine& line) { line.kept_ceilings = values.back() == kOn; }},
      {"Tile configurations", "tune", kRun, Takes::nothing, "",
       "time every tile configuration that a variant has compiled in,\n"
       "and run it with the fastest for the shape",
       [](const Values&, CommandLine& line) { line.tuning.tune = true; }},
      {"Tile configurations", "tune-out", kRun, Takes::value, "FILE",
       "with --tune: keep what was fastest in this tuning table,\n"
       "beside what it holds already",
       [](const Values& values, CommandLine& line) { line.tuning.out = values.back(); }},
      {"Tile configurations", "tune-table", kRun | kExplain, Takes::value, "FILE",
       "without --tune: take what this table says was fastest, by\n"
       "device and shape; where it is silent, a rule of the variant's\n"
       "decides (default: the tool's own, configs/tune.json)",
       [](const Values& values, CommandLine& line) { line.tuning.table = values.back(); }},
      {"Tile configurations", "configuration", kRun | kExplain, Takes::value, "NAME",
       "run with this one each variant that has it",
       [](const Values& values, CommandLine& line) { line.tuning.configuration = values.back(); }},
      {"Output", "json", kRun | kSelftest | kVerify, Takes::value, "FILE",
       "write the report there too; /dev/stdout then gets nothing else",
       [](const Values& values, CommandLine& line) { line.report.json = values.back(); }},
      {"Output", "csv", kRun | kVerify, Takes::value, "FILE", "write a table there too, a row a case",
       [](const Values& values, CommandLine& line) { line.report.csv = values.back(); }},
      {"Output", "junit", kRun | kVerify, Takes::value, "FILE", "write JUnit XML there too, for CI servers",
       [](const Values& values, CommandLine& line) { line.report.junit = values.back(); }},
      {"Comparison", "baseline", kRun, Takes::value, "FILE", "hold the run against this earlier JSON report",
       [](const Values& values, CommandLine& line) { line.baseline = values.back(); }},
      {"Comparison", "max-slowdown", kRun | kCompare, Takes::value, "PERCENT",
       fmt::format("of a case's median time; a regression is more than that, and\n"
                   "significant by the samples (default: {}%)",
                   100 * CommandLine().gate.max_slowdown),
       [](const Values& values, CommandLine& line) {
         line.gate.max_slowdown = parse_percent(values.back());
       }},
      {"Comparison", "force", kRun | kCompare, Takes::nothing, "",
       "compare reports of different devices, or with no case in\n"
       "common, too",
       [](const Values&, CommandLine& line) { line.gate.force = true; }},
      {"Tensors of other software", "tensors", kDraw | kVerify, Takes::value, "DIR",
       "NumPy files, float32: x.npy (n c h w), filter.npy or weight.npy\n"
       "(k c 3 3), bias.npy (k) and y.npy, which is judged; repeatable.\n"
       "With --shape and --fill those of draw: DIR/FILL/y.npy is all\n"
       "that is read, and each fill is judged by its own rules",
       [](const Values& values, CommandLine& line) {
         line.tensors.folders.assign(values.begin(), values.end());
       }},
      {"Tensors of other software", "math-class", kVerify, Takes::value, "CLASS",
       fmt::format("the rounding that y may show: {}\n(default: {})", fmt::join(spellings<MathClass>(), ", "),
                   to_string(CommandLine().tensors.math)),
       [](const Values& values, CommandLine& line) {
         line.tensors.math = parse_word<MathClass>(values.back());
       }},
      {"Tensors of other software", "algorithm", kVerify, Takes::value, "WORD",
       "that y was computed by: direct, or transform (Winograd, FFT),\n"
       "which errs by norm (default: direct)",
       [](const Values& values, CommandLine& line) {
         line.tensors.algorithm = parse_word<Algorithm>(values.back());
       }},
      {"Tensors of other software", "layout", kVerify, Takes::value, "LAYOUT",
       "of y.npy: nchw (n k p q) or nhwc (n p q k) (default: nchw)",
       [](const Values& values, CommandLine& line) {
         line.tensors.y_layout = parse_word<Layout>(values.back());
       }},
      {"Instead of a run", "list", 0, Takes::verb, "", "the same as the verb list", nullptr},
      {"Instead of a run", "calibrate", 0, Takes::verb, "", "the same as the verb calibrate", nullptr},
      {"Instead of a run", "version", 0, Takes::verb, "", "the same as the verb version", nullptr},
      {"Instead of a run", "help", 0, Takes::verb, "", "this text", nullptr, 'h'},
  };
}

std::string usage_of(const VerbWord& verb) {
  return fmt::format("{}{}{}", verb.word, verb.operands.empty() ? "" : " ", verb.operands);
}

const VerbWord& word_of(Verb verb) {
  return *std::ranges::find(kVerbs, verb, &VerbWord::verb);
}

Verb parse_verb(const std::string& word) {
  const auto found = std::ranges::find(kVerbs, word, &VerbWord::word);
  if (found != std::end(kVerbs)) return found->verb;
  std::vector<std::string> words;
  for (const VerbWord& verb : kVerbs) words.emplace_back(verb.word);
  throw InputError(fmt::format("\"{}\" is neither an option nor a command{}", word, advice(word, words)));
}

/// The words behind a verb, as many as it takes.
std::vector<std::string> read_operands(const std::vector<std::string>& rest, Verb verb) {
  const VerbWord& word = word_of(verb);
  const auto wanted =
      word.operands.empty() ? 0 : static_cast<std::size_t>(1 + std::ranges::count(word.operands, ' '));
  if (rest.size() > 1 + wanted)
    throw InputError(fmt::format("unexpected \"{}\" behind {}{}", rest[1 + wanted], usage_of(word),
                                 verb == Verb::verify ? "; want the folder as --tensors DIR" : ""));
  if (rest.size() < 1 + wanted && wanted > 0) throw InputError(fmt::format("want {}", usage_of(word)));
  return rest.empty() ? rest : std::vector(rest.begin() + 1, rest.end());
}

/// "a, b and c"; of one word at least.
std::string listed(std::vector<std::string_view> words) {
  const std::string last(words.back());
  words.pop_back();
  return words.empty() ? last : fmt::format("{} and {}", fmt::join(words, ", "), last);
}

/// No option is ignored without a word: each given one belongs to the verb.
void refuse_foreign_options(const Tokens& tokens, const std::vector<Option>& table, Verb verb) {
  for (const Option& option : table) {
    if (option.takes == Takes::verb || (option.verbs & only(verb)) != 0 ||
        !tokens.given.contains(std::string(option.name)))
      continue;
    std::vector<std::string_view> words;
    for (const VerbWord& other : kVerbs)
      if ((option.verbs & only(other.verb)) != 0) words.push_back(other.word);
    const bool negated =
        option.takes == Takes::on_off && tokens.given.at(std::string(option.name)).back() == kOff;
    throw InputError(fmt::format("--{}{} is an option of {}, not of {}", negated ? "no-" : "", option.name,
                                 listed(words), word_of(verb).word));
  }
}

void apply_options(const Tokens& tokens, const std::vector<Option>& table, CommandLine& line) {
  for (const Option& option : table) {
    const auto given = tokens.given.find(std::string(option.name));
    if (given == tokens.given.end() || !option.apply) continue;
    try {
      option.apply(given->second, line);
    } catch (const InputError& error) {
      throw InputError(fmt::format("--{}: {}", option.name, error.what()));
    }
  }
}

}  // namespace

CommandLine parse_command_line(std::span<const char* const> arguments) {
  const std::vector<Option> table = option_table();
  const Tokens tokens = tokenize(arguments, table);
  CommandLine line;
  line.arguments = arguments;
  if (!tokens.rest.empty()) line.verb = parse_verb(tokens.rest.front());
  for (const Option& option : table)
    if (option.takes == Takes::verb && tokens.given.contains(std::string(option.name)))
      line.verb = parse_verb(std::string(option.name));
  // Someone who adds --help to a command line is not told what is wrong with it.
  if (tokens.given.contains("help") || tokens.given.contains("version")) return line;

  line.operands = read_operands(tokens.rest, line.verb);
  refuse_foreign_options(tokens, table, line.verb);
  if (line.verb == Verb::verify && tokens.given.contains("fill") != tokens.given.contains("shape"))
    throw InputError(
        "verify takes --shape and --fill together: the operands are then those that draw writes");
  for (const char* const of_operands : {"seed", "algorithm"})
    if (line.verb == Verb::verify && tokens.given.contains(of_operands) && !tokens.given.contains("fill"))
      throw InputError(fmt::format("--{} says nothing to verify without --shape and --fill", of_operands));
  for (const char* const of_gate : {"max-slowdown", "force"})
    if (line.verb == Verb::run && tokens.given.contains(of_gate) && !tokens.given.contains("baseline"))
      throw InputError(fmt::format("--{} says nothing without --baseline FILE", of_gate));
  if (tokens.given.contains("tune-out") && !tokens.given.contains("tune"))
    throw InputError("--tune-out says nothing without --tune");
  for (const char* const instead : {"tune-table", "configuration"})
    if (tokens.given.contains(instead) && tokens.given.contains("tune"))
      throw InputError(
          fmt::format("--{} says nothing beside --tune, which times all configurations", instead));
  apply_options(tokens, table, line);  // a mistake here is told before the file is looked at
  if (const auto config = tokens.given.find("config"); config != tokens.given.end()) {
    line.config = config->second.back();
    line.run = load_config(line.config);
    apply_options(tokens, table, line);  // again: wherever the file was named, the command line wins
  }
  if (const auto why = check_options(line.run)) throw InputError(*why);
  if (tokens.given.contains("tune-out") && !line.run.check)
    throw InputError("--tune-out keeps configurations that are right, but check is off; want the check on");
  drop_repeats(line.run);
  return line;
}

std::string help_text() {
  std::string text =
      "convmish-bench checks and times kernels of y = mish(mish(conv2d(x, w) + b)), 3x3, fp32 tensors.\n\n"
      "Usage: convmish-bench [VERB] [OPTIONS]\n\nVerbs\n";
  for (const VerbWord& verb : kVerbs) text += fmt::format("  {:<24}{}\n", usage_of(verb), verb.help);

  std::string_view group;
  for (const Option& option : option_table()) {
    if (option.group != group) text += fmt::format("\n{}\n", group = option.group);
    const std::string name =
        fmt::format("{}--{}{}{}{}", option.letter ? fmt::format("-{}, ", option.letter) : "",
                    option.takes == Takes::on_off ? "[no-]" : "", option.name,
                    option.argument.empty() ? "" : " ", option.argument);
    std::string help = option.help;
    for (std::size_t at = 0; (at = help.find('\n', at)) != help.npos; at += 27) help.insert(at + 1, 26, ' ');
    text += fmt::format("  {:<24}{}\n", name, help);
  }
  return text + fmt::format("\nExamples{}\nExit codes (the worst one wins){}", kExamples, kExitCodes);
}

}  // namespace convmish
