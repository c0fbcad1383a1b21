// NUTS with Stan's defaults on the headers that httpstan ships: PROGRAM data.json draws.csv SEED WARMUP DRAWS. Prints processor seconds of
// warm-up and of sampling.
#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/stream_logger.hpp>
#include <stan/callbacks/stream_writer.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <ctime>
#include <fstream>
#include <iostream>

stan::model::model_base &new_model(stan::io::var_context &data_context, unsigned int seed, std::ostream *msg_stream);

static double cpu() { return double(std::clock()) / CLOCKS_PER_SEC; }

// The first text after the heading is about the end of adaptation.
struct Draws : stan::callbacks::stream_writer {
  double adapted = 0;
  explicit Draws(std::ostream &to) : stan::callbacks::stream_writer(to, "# ") {}
  using stan::callbacks::stream_writer::operator();
  void operator()(const std::string &text) override {
    if (adapted == 0) adapted = cpu();
    stan::callbacks::stream_writer::operator()(text);
  }
};

int main(int, char **argv) {
  std::ifstream in(argv[1]);
  stan::json::json_data data(in);
  const unsigned seed = std::stoul(argv[3]);
  stan::model::model_base &model = new_model(data, seed, &std::cout);
  std::ofstream out(argv[2]);
  Draws draws(out);
  stan::callbacks::writer none;
  stan::callbacks::stream_logger logger(std::cout, std::cout, std::cout, std::cerr, std::cerr);
  stan::callbacks::interrupt interrupt;
  stan::io::empty_var_context init;
  const double start = cpu();
  const int status =
      stan::services::sample::hmc_nuts_diag_e_adapt(model, init, seed, 1, 2, std::stoi(argv[4]), std::stoi(argv[5]), 1, false, 0, 1, 0, 10,
                                                    0.8, 0.05, 0.75, 10, 75, 50, 25, interrupt, logger, none, draws, none);
  std::cout << "\nprocessor seconds " << draws.adapted - start << " " << cpu() - draws.adapted << "\n";
  return status;
}
