// Object of headers -> array of events -> one event at a time; a fault costs one event, not the file. Test: tests/unit/profile_reader_test.cpp.
#include "trace/profile/reader.hpp"

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/window.hpp"

namespace stepcast::trace::profile {

namespace {

class Reader {
 public:
  Reader(ByteSource& source, std::string label, EventSink& sink) : window_(source), label_(std::move(label)), sink_(sink) {}
  bool read();

 private:
  void skip_byte_order_mark();
  bool read_headers();
  bool read_header(std::string_view key);
  bool find_events();
  void read_events();
  bool read_event();
  void resynchronise();
  bool skip_value();
  void consume_one();
  void truncated();

  Window window_;
  std::string label_;
  EventSink& sink_;
  bool truncated_ = false;
};

/// Scans with `scan` from the place of reading, with as much more text as it asks for; the place moves behind what was scanned if that is ok.
template <class Scanner>
Scan scan_in(Window& window, Scanner scanner) {
  while (true) {
    Cursor in = window.cursor();
    const Scan scan = scanner(in);
    if (scan == Scan::ok) window.advance_to(in);
    if (scan != Scan::more) return scan;
    if (!window.more()) return window.at_end() ? Scan::more : Scan::broken;
  }
}

bool Reader::read() {
  skip_byte_order_mark();
  switch (window_.next()) {
    case '[': read_events(); return true;
    case '{': return read_headers();
    default:
      throw InputError(label_, "", "is no trace: neither a JSON object nor an array", "stepcast reads Chrome/Kineto JSON, also gzipped or in a zip archive");
  }
}

void Reader::skip_byte_order_mark() {
  window_.next();
  Cursor in = window_.cursor();
  if (std::string_view(in.at, static_cast<std::size_t>(in.end - in.at)).starts_with("\xef\xbb\xbf")) in.at += 3;
  window_.advance_to(in);
}

void Reader::consume_one() {
  Cursor in = window_.cursor();
  if (in.at != in.end) ++in.at;
  window_.advance_to(in);
}

void Reader::truncated() {
  if (!truncated_) sink_.oddity("truncated_file");
  truncated_ = true;
}

/// The outermost object; true if an array of events was in it.
bool Reader::read_headers() {
  consume_one();
  bool events = false;
  for (char next = window_.next(); next != '}'; next = window_.next()) {
    std::string key;
    const Scan scan = next != '"' ? Scan::broken : scan_in(window_, [&](Cursor& in) {
      std::string_view text;
      const Scan result = scan_string(in, text);
      key = text;
      return result;
    });
    if (next == ',' || next == ':') {
      consume_one();
    } else if (scan == Scan::ok && window_.next() == ':') {
      consume_one();
      events = read_header(key) || events;
    } else if (window_.at_end()) {
      truncated();
      return events;
    } else {
      sink_.oddity("broken_headers");
      if (!find_events()) return events;
      events = true;
    }
  }
  return events;
}

/// The value behind `key`; true if it was the array of events.
bool Reader::read_header(std::string_view key) {
  const char first = window_.next();
  if (key == "traceEvents" && first == '[') {
    read_events();
    return true;
  }
  Value value;
  switch (scan_in(window_, [&](Cursor& in) { return scan_value(in, value); })) {
    case Scan::ok: sink_.header(key, value); break;
    case Scan::more:
      truncated();
      window_.drop_all();
      break;
    case Scan::broken:
      sink_.oddity("broken_headers");
      skip_value();
      break;
  }
  return false;
}

/// A value too large for the window: to behind its end by counting brackets alone.
bool Reader::skip_value() {
  int depth = 0;
  bool quoted = false, escaped = false;
  for (char next = *window_.cursor().at; next != '\0' || window_.more(); next = *window_.cursor().at) {
    consume_one();
    if (quoted) {
      quoted = escaped || next != '"';
      escaped = !escaped && next == '\\';
    } else if (next == '"') {
      quoted = true;
    } else if (next == '{' || next == '[') {
      ++depth;
    } else if ((next == '}' || next == ']') && --depth <= 0) {
      return true;
    }
  }
  return false;
}

/// Where the outermost object is broken: on to the text "traceEvents" and its '[', and through the events.
bool Reader::find_events() {
  constexpr std::string_view kKey = "\"traceEvents\"";
  while (true) {
    Cursor in = window_.cursor();
    const std::string_view text(in.at, static_cast<std::size_t>(in.end - in.at));
    const std::size_t at = text.find(kKey);
    if (at != std::string_view::npos) {
      in.at += at + kKey.size();
      window_.advance_to(in);
      if (window_.next() != ':') continue;
      consume_one();
      if (window_.next() != '[') continue;
      read_events();
      return true;
    }
    if (text.size() > kKey.size()) in.at = in.end - kKey.size();  // the key may straddle the end
    window_.advance_to(in);
    if (!window_.more()) return window_.drop_all(), false;
  }
}

/// At '[': through the events to behind the ']'.
void Reader::read_events() {
  consume_one();
  while (true) {
    switch (window_.next()) {
      case ',': consume_one(); break;
      case ']': consume_one(); return;
      case '\0':
        if (window_.cursor().at == window_.cursor().end) return truncated();
        sink_.oddity("broken_events");
        consume_one();
        break;
      default:
        if (!read_event()) return;
    }
  }
}

/// One element of the array; false at the end of the file.
bool Reader::read_event() {
  RawEvent event;
  bool object = false;
  const Scan scan = scan_in(window_, [&](Cursor& in) {
    object = *in.at == '{';
    event = {};
    Value other;
    return object ? scan_event(in, event) : scan_value(in, other);
  });
  switch (scan) {
    case Scan::ok:
      if (object) sink_.event(event);
      else sink_.oddity("array_elements_that_are_no_events");
      return true;
    case Scan::more:
      truncated();
      window_.drop_all();
      return false;
    case Scan::broken: break;
  }
  sink_.oddity("broken_events");
  resynchronise();
  return true;
}

/// On to the next '{' that follows a comma or '[': the start of an event, for an event's own objects follow a colon.
void Reader::resynchronise() {
  char before = '\0';
  consume_one();
  while (true) {
    Cursor in = window_.cursor();
    for (; in.at != in.end && !(*in.at == '{' && (before == ',' || before == '[')); ++in.at) {
      if (*in.at != ' ' && *in.at != '\n' && *in.at != '\r' && *in.at != '\t') before = *in.at;
    }
    const bool found = in.at != in.end;
    window_.advance_to(in);
    if (found || !window_.more()) return;
  }
}

}  // namespace

void read_events(ByteSource& source, const std::string& label, EventSink& sink) {
  if (!Reader(source, label, sink).read()) throw InputError(label, "", "is no trace: it has no array \"traceEvents\"");
  if (source.cut_short()) sink.oddity("compressed_data_cut_short");
}

}  // namespace stepcast::trace::profile
