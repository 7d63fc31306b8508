// `stepcast serve` over a socket of this machine: requests that are whole, broken, too long or never end, and the end by a signal. docs/serve.md.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.hpp"
#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;
using Json = nlohmann::ordered_json;

namespace {

/// The program, serving on a port of its own until the test ends.
class Serving {
 public:
  explicit Serving(std::vector<std::string> arguments) {
    int out[2];
    REQUIRE(pipe(out) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      arguments.insert(arguments.begin(), stepcast::test::binary());
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) url_ += c;
    close(out[0]);
    const std::size_t colon = url_.rfind(':');
    if (colon != std::string::npos) port_ = static_cast<std::uint16_t>(std::atoi(url_.c_str() + colon + 1));
  }
  ~Serving() {
    if (pid_ > 0) end(SIGKILL);
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  /// Its exit code.
  int end(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  }
  [[nodiscard]] int connected() const {
    const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return socket_;
  }
  /// All that is answered until the server closes.
  [[nodiscard]] std::string sent(const std::string& text) const {
    const int socket_ = connected();
    (void)send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    char buffer[65536];
    for (ssize_t n = 0; (n = recv(socket_, buffer, sizeof buffer, 0)) > 0;) answer.append(buffer, static_cast<std::size_t>(n));
    close(socket_);
    return answer;
  }
  [[nodiscard]] std::string posted(const std::string& body) const {
    return sent("POST /api/forecast HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
                "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  pid_t pid_ = -1;
  std::string url_;
  std::uint16_t port_ = 0;
};

const std::vector<std::string> kServe = {"serve", "7b-32xa100", "--set", "/model/layers=2", "--set", "/run/steps=3", "--port", "0"};

std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

/// This build serves, or says why not in one line.
bool serves() {
  const Outcome r = Place().run("serve no-such-scenario --port 0");
  CHECK(r.code == 2);
  CHECK(one_line(r.err));
  const bool without = has(r.err, "this build has no");
  if (without) MESSAGE("skipped: " << r.err);
  return !without;
}

}  // namespace

TEST_CASE("serve: the figures of run over a socket, one line of address, the end by SIGTERM and SIGINT") {
  if (!serves()) return;
  for (const int signal : {SIGTERM, SIGINT}) {
    Serving server(kServe);
    CHECK(server.url() == "http://" + server.host() + "/");
    const std::string answer = server.posted(R"({"settings": [{"pointer": "/batch/micro_batch", "value": 4}]})");
    REQUIRE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    const Json got = Json::parse(body_of(answer)),
               run = Json::parse(Place().run("run 7b-32xa100 --set /model/layers=2 --set /run/steps=3 --set /batch/micro_batch=4 --json").out);
    for (const auto& [name, value] : got["figures"].items()) CHECK(value == run[name]);
    CHECK(has(server.sent("GET / HTTP/1.1\r\nHost: " + server.host() + "\r\nConnection: close\r\n\r\n"), "frame-ancestors 'none'"));
    CHECK(server.end(signal) == 0);
  }
}

TEST_CASE("serve: what is no request gets a status or a closed connection, and the next one its answer") {
  if (!serves()) return;
  const Serving server(kServe);
  const std::string post = "POST /api/forecast HTTP/1.1\r\nHost: " + server.host() + "\r\nContent-Type: application/json\r\nConnection: close\r\n";
  CHECK(server.sent("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(server.sent(std::string(300, '\0')).starts_with("HTTP/1.1 400 "));
  CHECK(server.sent("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(10000, 'x')).starts_with("HTTP/1.1 431 "));
  CHECK(server.sent(post + "Content-Length: 99999999\r\n\r\n").starts_with("HTTP/1.1 413 "));
  CHECK(server.sent(post + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + std::string(0x20000, ' ')).starts_with("HTTP/1.1 413 "));
  CHECK(server.sent("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 403 "));
  CHECK(server.posted("{\"settings\": 4}").starts_with("HTTP/1.1 400 "));
  const int silent = server.connected();  // says nothing, and is in nobody's way
  CHECK(server.posted("{}").starts_with("HTTP/1.1 200 "));
  close(silent);
}

TEST_CASE("serve: many ask at once") {
  if (!serves()) return;
  const Serving server(kServe);
  std::vector<std::string> answers(12);
  {
    std::vector<std::jthread> clients;
    for (std::string& answer : answers)
      clients.emplace_back([&] { answer = server.posted(R"({"settings": [{"pointer": "/recompute/mode", "value": "full"}]})"); });
  }
  REQUIRE(answers[0].starts_with("HTTP/1.1 200 "));
  for (const std::string& answer : answers) CHECK(answer == answers[0]);
}

TEST_CASE("serve: what can't be served is exit code 2 or 3 and one line") {
  if (!serves()) return;
  const Place place;
  for (const char* arguments :
       {"serve", "serve 7b-32xa100 --port 0 --set /batch/micro_batch=0", "serve 7b-32xa100 --port 0 --host 203.0.113.7", "serve 7b-32xa100 --port 70000"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments);
    CHECK_MESSAGE(r.out.empty(), arguments);
  }
  const Serving server(kServe);
  const Outcome taken = place.run("serve 7b-32xa100 --port " + server.host().substr(10));
  CHECK(taken.code == 3);
  CHECK(one_line(taken.err));
}
